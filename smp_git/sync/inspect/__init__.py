"""What a remote sent, inspected before anything of it is used."""
