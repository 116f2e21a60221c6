"""What an audit says of estimators whose leakage it does not know."""

from __future__ import annotations

from typing import Any

#: words in the names of classes whose training is no smooth function of a record
_ROUGH = ("Tree", "Forest", "Boost", "Bagging", "Neighbors", "Stacking", "Voting", "LGBM", "XGB", "Isolation")
_KERNELS = ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "GaussianProcess", "KernelRidge", "SVM")
#: linear models with losses of their own
_UNKNOWN_LOSSES = {"LinearSVR": "the ε-insensitive", "QuantileRegressor": "the pinball", "Perceptron": "the perceptron's", "RANSACRegressor": "of a random subset",
                   "TheilSenRegressor": "of medians", "PassiveAggressiveClassifier": "the hinge"}


def advice(model: Any, supported: str) -> str:
    """The message: what is not known of the model, and where to go."""
    name = type(model).__name__
    play = (f"leakscope.attack_model({name.lower()}, X, y, nonmembers=…, secret=…) plays membership and attribute inference on it, "
            "with intervals and the baseline")
    if any(word in name for word in _ROUGH):
        return f"{name}: it has no η: its training is no smooth function of a record, so that there is no Fisher information. {play}"
    if name in _KERNELS or name.startswith(("GaussianProcess", "Kernel")):
        return (f"{name}: it has no η here: a kernel machine is as many coefficients as records, and what a release of it gives away is "
                f"not known. {play}")
    if name in _UNKNOWN_LOSSES:
        return (f"{name}: its loss ({_UNKNOWN_LOSSES[name]}) is none whose leakage is known: fit one of {supported}. {play}")
    if name == "MLPClassifier" or name == "MLPRegressor":
        return f"{name}: audit it as a network, with leakscope.Network or leakscope.torch. {play}"
    return (f"{name}: what a release of it gives away is not known here: expected a fitted {supported}. For another "
            f"linear model give its coefficients: audit(X, y, coefficients={{…}}, scale='none', l2=…). {play}")


def one_against_the_others(name: str, classes: int) -> str:
    """The message about as many models as classes: released together, their information adds up."""
    return (f"{name} has {classes} classes, which are {classes} models, each of one class against the others: expected two classes. Audit each "
            f"by itself, audit({name}(…).fit(X, y == c), X, y == c, label='public') for every class c: what they give away of an attribute "
            "adds up, η² = Σ η². One model of all classes is LogisticRegression(solver='lbfgs')")
