"""Members of an uncertainty set over a Gymnasium environment, and checks of them."""
