"""A fresh target written full: whether each pass is whole, and where its rate falls."""
