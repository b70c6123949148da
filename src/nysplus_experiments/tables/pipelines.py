"""Hand-made preprocessing of scikit-learn for frames with numbers, categories and gaps."""

from __future__ import annotations

from typing import Any

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)

#: Preprocessing that a careful user would try, by the names of its two halves.
PIPELINES = {
    "standard, one-hot": ("standard", "one-hot"),
    "quantile, one-hot": ("quantile", "one-hot"),
    "standard, target": ("standard", "target"),
    "quantile, target": ("quantile", "target"),
    "standard, ordinal": ("standard", "ordinal"),
}


def preprocessing(scaling: str = "standard", encoding: str = "one-hot") -> Any:
    """Return a transformer from a raw frame to numbers.

    Numbers are standardised, or mapped to a normal distribution by their quantiles; gaps become
    the median and a flag. Categories become one column a level, the mean target of their level, or
    its position, both standardised; a gap is a level.
    """
    scaler = {
        "standard": StandardScaler(),
        "quantile": QuantileTransformer(
            n_quantiles=100, output_distribution="normal", random_state=0
        ),
    }[scaling]
    unknown = {"unknown_value": -1, "encoded_missing_value": -1}
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", **unknown)
    encoder = {
        "one-hot": OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        "target": make_pipeline(TargetEncoder(), StandardScaler()),
        "ordinal": make_pipeline(ordinal, StandardScaler()),
    }[encoding]
    numbers = make_pipeline(scaler, SimpleImputer(strategy="median", add_indicator=True))
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (encoder, make_column_selector(dtype_exclude="number")),
    )
