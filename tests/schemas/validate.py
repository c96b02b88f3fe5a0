"""Validates a bill of materials, read from standard input, as others do: python3 validate.py cyclonedx|spdx|slsa"""

import json
import sys
import tempfile

kind, text = sys.argv[1], sys.stdin.read()
if kind == "cyclonedx":
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
elif kind == "spdx":
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    with tempfile.NamedTemporaryFile("w", suffix=".spdx.json") as file:
        file.write(text)
        file.flush()
        problem = validate_full_spdx_document(parse_file(file.name))
else:
    from google.protobuf import json_format
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement

    Statement.copy_from_pb(json_format.Parse(text, statement_pb2.Statement())).validate()
    json_format.ParseDict(json.loads(text)["predicate"], provenance_pb2.Provenance())
    problem = None
if problem:
    sys.exit(str(problem))
