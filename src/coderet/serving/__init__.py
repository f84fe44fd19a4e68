"""What encoders and generators on a server share: asking, counting tokens as the server does, and what is spent."""
