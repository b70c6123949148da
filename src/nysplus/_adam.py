"""Adam (Kingma & Ba 2015): gradient steps of about the same size for every parameter."""

from __future__ import annotations

import numpy as np

from nysplus._typing import Float


class Adam:
    """Moving averages of gradients and of their squares, and the steps that follow from them.

    With the averages m of the gradients and v of their squares, both corrected for their start at
    zero, a step is ``rate · m / (√v + ε)``.

    Parameters
    ----------
    like : ndarray
        Array with the shape and the floating type of the gradients.
    beta1, beta2 : float
        Share of the old averages m and v that a step keeps.
    epsilon : float
        ε, which bounds the steps of parameters whose gradients are small: a number for
        :meth:`descend`, a share of the root mean square of √v for :meth:`step`.

    Notes
    -----
    The two kinds of step round differently, and the models fitted with each of them depend on
    the last bit. This is why neither is written in terms of the other.
    """

    def __init__(self, like: Float, beta1: float, beta2: float, epsilon: float) -> None:
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self._mean, self._square, self._scratch = np.zeros((3, *like.shape), like.dtype)
        self._count = 0

    def _average(self, gradient: Float) -> None:
        """Add a gradient, which is overwritten, to the averages."""
        self._count += 1
        np.multiply(gradient, gradient, out=self._scratch)
        self._square *= self.beta2
        self._scratch *= 1.0 - self.beta2
        self._square += self._scratch
        self._mean *= self.beta1
        gradient *= 1.0 - self.beta1
        self._mean += gradient

    def step(self, gradient: Float, rates: Float | float) -> Float:
        """Return the step to subtract. `gradient` is overwritten.

        Parameters
        ----------
        gradient : ndarray
        rates : ndarray or float
            Learning rate of each parameter.
        """
        self._average(gradient)
        size = np.sqrt(self._square / (1.0 - self.beta2**self._count))
        size = size + self.epsilon * np.sqrt((size**2).mean()) + 1e-300
        step: Float = rates * (self._mean / (1.0 - self.beta1**self._count)) / size
        return step

    def descend(self, parameters: Float, gradient: Float, rates: Float, share: float) -> None:
        """Subtract the step from `parameters` in place, without new arrays.

        Parameters
        ----------
        parameters : ndarray
            Updated in place.
        gradient : ndarray
            Overwritten.
        rates : ndarray
            Largest learning rate of each parameter.
        share : float
            Share of the largest learning rate that this step has.
        """
        self._average(gradient)
        step = self._scratch
        np.multiply(self._square, 1.0 / (1.0 - self.beta2**self._count), out=step)
        np.sqrt(step, out=step)
        step += self.epsilon
        np.divide(self._mean, step, out=step)
        step *= rates
        step *= share / (1.0 - self.beta1**self._count)
        parameters -= step
