"""What a type checker and an editor see of the library."""
