import pytest

from physkit.native import native_code_is_used


@pytest.fixture(autouse=True, scope="session")
def native_code():
    if not native_code_is_used():
        pytest.skip(
            "there is no native code without a C compiler, on a GPU, and where PHYSKIT_NATIVE is 0"
        )
