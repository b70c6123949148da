"""Learning of landmarks, coefficients and a linear map by gradient descent."""
