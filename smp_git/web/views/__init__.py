"""What each page shows: questions to the doors, put together."""
