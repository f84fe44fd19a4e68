"""What is done to an encoder once it is trained and before it is saved: the section `after` of a fit."""

from typing import Any

from coderet import registry


def check(encoder: Any, *, average_with_base: float = 0.0) -> None:
    """BadValue, before anything is trained, for what `finish` cannot do to encoder."""
    registry.check_range("fit.after.average_with_base", average_with_base, 0.0, 1.0)
    if average_with_base and not hasattr(encoder, "average_with_base"):
        raise registry.BadValue(
            f"fit.after.average_with_base is {average_with_base}, but an encoder of kind {encoder.settings['kind']} "
            "starts from no base; leave it out"
        )


def finish(encoder: Any, *, average_with_base: float = 0.0) -> dict[str, Any]:
    """Change encoder in place; the facts of it, for the results file.

    average_with_base: the share of the weights that training started from, in the weights that are saved (Wortsman et
    al., 2022). It gives back some of what the base knew and the pairs do not teach. BadValue for an encoder that
    started from nothing.
    """
    check(encoder, average_with_base=average_with_base)
    if average_with_base:
        encoder.average_with_base(average_with_base)
    return {"average_with_base": average_with_base}
