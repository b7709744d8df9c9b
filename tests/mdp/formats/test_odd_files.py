"""Files as offices export them: spreadsheets under another name, open quotes, blanks between thousands, units."""

import pytest

import urbe
from urbe.mdp.formats.errors import ModelFileError

HEAD = "state;action;reward;next_state\n"


@pytest.fixture
def read(tmp_path):
    def call(content, name="log.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return urbe.read_log(path, **options)

    return call


@pytest.mark.parametrize("content", [b"PK\x03\x04\x14\x00\x06\x00\xe9", HEAD.encode("utf-16-le")])
def test_what_is_no_text_is_refused(read, content):
    with pytest.raises(ModelFileError, match=r"is not text.*spreadsheet.*Export it as CSV"):
        read(content)


def test_an_open_quote_is_found_where_it_opens(read):
    with pytest.raises(ModelFileError, match=r"line 3: a field in quotes begins here and goes on to line 5"):
        read('state,action,reward,next_state\na,x,1,b\n"b,y,2,a\na,x,1,b\nb,y,1,b\n')


@pytest.mark.parametrize("mark", [" ", "\u00a0", "\u202f", "'", "’"])
def test_thousands_between_blanks_and_apostrophes(read, mark):
    log = read(HEAD + f"a;x;1{mark}250,5;b\nb;x;-12{mark}000,0;a\na;y;\u2212 3;b\n".replace("\u2212 ", "\u2212"))
    assert log.reward.tolist() == [1250.5, -12000.0, -3.0]


def test_blanks_in_names_remain(read):
    log = read(HEAD + "1 000;x;1;2 000\n2 000;x;1;1 000\n")
    assert log.labels.states == ("1 000", "2 000")


@pytest.mark.parametrize("amount", ["12 EUR", "€ 12", "5%", "(12)"])
def test_units_are_named(read, amount):
    with pytest.raises(ModelFileError, match=r"expected a number. Write it without units or other characters\."):
        read(HEAD + f"a;x;{amount};b\n")


def test_a_header_of_one_name_explains_separators(read):
    with pytest.raises(ModelFileError, match=r"Fields may be separated by commas, semicolons, tabs or \|\."):
        read("state action reward next_state\n0 1 0.5 1\n")
