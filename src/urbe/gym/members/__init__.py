"""Members of an uncertainty set over a Gymnasium environment, and checks that they are what they should be."""
