# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.simulate import (
    CommunicationReport as CommunicationReport,
    communication_report as communication_report,
)
