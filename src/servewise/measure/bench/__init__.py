"""How a server is measured so that the figures can be trusted: order, warm-up, steady window, repeats, search."""
