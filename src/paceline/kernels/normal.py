"""The quantile of the standard normal distribution.

Algorithm AS 241 (PPND16) of Wichura, "The percentage points of the normal distribution" (Applied Statistics 37, 1988).
"""

import math

from paceline.kernels.jit import kernel


@kernel
def polynomial(x: float, a: float, b: float, c: float, d: float, e: float, f: float, g: float, h: float) -> float:
    """A x^7 + b x^6 + ... + g x + h, by Horner's rule."""
    return ((((((a * x + b) * x + c) * x + d) * x + e) * x + f) * x + g) * x + h


@kernel
def normal(u: float) -> float:
    """The standard normal quantile at u in (0, 1): relative error about 1e-15, no logarithm for 17 in 20 of the u."""
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        top = polynomial(
            r,
            *(2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457),
            *(13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
        )
        bottom = polynomial(
            r,
            *(5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867),
            *(5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
        )
        return q * top / bottom
    r = math.sqrt(-math.log(min(u, 1.0 - u)))
    if r <= 5.0:
        r -= 1.6
        top = polynomial(
            r,
            *(7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258),
            *(3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
        )
        bottom = polynomial(
            r,
            *(1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459),
            *(0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
        )
    else:
        r -= 5.0
        top = polynomial(
            r,
            *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093),
            *(0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
        )
        bottom = polynomial(
            r,
            *(2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4),
            *(0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
        )
    return math.copysign(top / bottom, q)
