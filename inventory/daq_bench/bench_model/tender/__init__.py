"""Promise: a choice between contenders says how firm it is. Imports verdict and the rooms below."""
