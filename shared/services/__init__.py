"""What a person may ask for: one function a wish, for the command and for HTTP; each owns its transaction."""
