"""What a schema or a check says of wrong input, flattened as the API would."""

from collections.abc import Callable
from typing import Any

import pytest
from marshmallow import ValidationError

from schemas.problems import Problem, first_problems


def problems_of(call: Callable[[], Any]) -> list[Problem]:
    with pytest.raises(ValidationError) as caught:
        call()
    return first_problems(caught.value.messages)[0]


def fields_of(call: Callable[[], Any]) -> list[str]:
    return [problem.field for problem in problems_of(call)]
