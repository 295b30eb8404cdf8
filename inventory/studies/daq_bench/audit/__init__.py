"""The project's own adversary: wrong evidence made from good evidence, and how much of it passes (`make audit`)."""
