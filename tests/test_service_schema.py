"""schemathesis plays with the whole OpenAPI document: whatever it sends, the answer is as the document says."""

import copy
import json
import urllib.request

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from service import ADS, serving

from paceline.service.openapi import DOCUMENT

pytestmark = pytest.mark.slow
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = "/stream"
TOKEN = "t" * 32


def without_tokens(document):
    """Every request has its token; what happens without one is tested elsewhere."""
    document = copy.deepcopy(document)
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["security"] = []
    return document


OPERATIONS = {
    f"{found.ok().method.upper()} {found.ok().path}": found.ok()
    for found in schemathesis.openapi.from_dict(without_tokens(DOCUMENT)).get_all_operations()
    if not found.ok().path.endswith(ENDLESS)
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("schema"), env={"PACELINE_TOKEN": TOKEN}) as process:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        put = urllib.request.Request(
            f"{process.address}/v1/bandits/ads", json.dumps(ADS).encode(), headers, method="PUT"
        )
        urllib.request.urlopen(put, timeout=20).close()
        yield process.address


def has_a_choice(operation):
    """Whether anything about a request can be wrong."""
    described = DOCUMENT["paths"][operation.path][operation.method]
    return bool(described["parameters"]) or "requestBody" in described


MODES = [
    pytest.param(operation, mode, id=f"{name} {mode.value}")
    for name, operation in OPERATIONS.items()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if mode is GenerationMode.POSITIVE or has_a_choice(operation)
]


@pytest.mark.parametrize(("operation", "mode"), MODES)
def test_whatever_is_sent_the_answer_is_as_the_document_says(address, operation, mode):
    is_about_one = "{bandit}" in operation.path and operation.method != "put"

    @settings(max_examples=50, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def play(case):
        if is_about_one and mode is GenerationMode.POSITIVE:
            case.path_parameters["bandit"] = "ads"  # one that is there
        response = case.call(base_url=address, timeout=20, headers={"Authorization": f"Bearer {TOKEN}"})
        checks = CHECKS if mode is GenerationMode.POSITIVE else [*CHECKS, negative_data_rejection]
        case.validate_response(response, checks=checks)

    play()
