"""Every style has its looks in every theme: readable, and told apart without colours too."""

from collections.abc import Iterator
from typing import ClassVar, Final

import pytest
from rich.style import Style
from textual.app import ComposeResult
from textual.color import Color
from textual.strip import Strip
from textual.widgets import Input, TextArea

from rune.text.safe_text import SafeText
from rune.tui.lines import STYLES, Line, Span, line
from rune.tui.painting import LINE_CLASSES, Painter
from rune.tui.themes import DEFAULT_THEME, PLAIN_THEME, THEMES, wants_no_colour
from rune.tui.widgets.line_rows import LineRows
from tests.tui.small_app import SmallApp

COLOURED: Final = tuple(theme.name for theme in THEMES if theme.name != PLAIN_THEME)
# What one looks for rather than reads.
FAINT: Final = {"dim", "rule", "comment", "thinking", "quote"}


class Sample(LineRows):
    """A row in each style."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(LINE_CLASSES)

    def draw(self, width: int) -> list[Line]:
        return [line(Span(SafeText(name), name)) for name in STYLES]


class TypingApp(SmallApp):
    """Something to type into too."""

    def compose(self) -> ComposeResult:
        yield Input("typed")
        yield TextArea("selected")
        yield Sample()


def contrast(style: Style) -> float:
    assert style.color is not None
    assert style.bgcolor is not None
    front, back = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
    return ratio(front, back) if not style.reverse else ratio(back, front)


def ratio(one: Color, other: Color) -> float:
    """Return the contrast of two colours as the Web Content Accessibility Guidelines define it."""

    def luminance(color: Color) -> float:
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def styles_on(app: SmallApp) -> Iterator[tuple[str, Style]]:
    """Give each style as it is painted, plain, on a code block and under the cursor."""
    painter = Painter(app.query_one(Sample))
    for name in STYLES:
        yield name, painter.style(name)
        yield name, painter.style(f"block {name}")
        yield name, painter.style(f"{name} chosen")


async def test_every_style_has_a_rule_and_every_rule_is_a_style() -> None:
    app = SmallApp(Sample())
    async with app.run_test():
        named = {
            selector.name
            for rules in app.stylesheet.rules
            for selectors in rules.selector_set
            for selector in selectors.selectors
            if selector.name.startswith("line--")
        }
    assert named == LINE_CLASSES


@pytest.mark.parametrize("theme", COLOURED)
async def test_what_is_read_stands_out_from_what_it_stands_on(theme: str) -> None:
    app = SmallApp(Sample(), theme=theme)
    async with app.run_test() as pilot:
        await pilot.pause()
        for name, style in styles_on(app):
            least = 3.0 if name in FAINT else 7.0 if theme == "rune-contrast" else 4.5
            assert contrast(style) >= least, (name, style)


@pytest.mark.parametrize("theme", COLOURED)
async def test_header_and_panel_are_as_readable_as_the_rest(theme: str) -> None:
    app = SmallApp(Sample(), theme=theme)
    async with app.run_test() as pilot:
        await pilot.pause()
        sample = app.query_one(Sample)
        for background in ("surface", "panel"):
            sample.styles.background = app.theme_variables[background]
            for name, style in styles_on(app):
                assert contrast(style) >= (3.0 if name in FAINT else 4.5), (background, name, style)


@pytest.mark.parametrize("theme", COLOURED)
async def test_cursor_selection_and_scrollbar_are_seen(theme: str) -> None:
    app = SmallApp(Sample(), theme=theme)
    async with app.run_test() as pilot:
        await pilot.pause()
        names = app.theme_variables
        ground = Color.parse(names["background"])
        for name in ("scrollbar", "border", "input-cursor-background", "input-selection-background"):
            assert ratio(Color.parse(names[name]), ground) >= 3.0, name
        for kind in ("input-selection", "input-cursor", "block-cursor", "screen-selection"):
            on = Color.parse(names[f"{kind}-background"])
            assert ratio(Color.parse(names[f"{kind}-foreground"]), on) >= 4.5, kind


async def test_the_plain_theme_has_the_terminals_own_colours_only() -> None:
    app = SmallApp(Sample(), theme=PLAIN_THEME)
    async with app.run_test() as pilot:
        await pilot.pause()
        for name, style in styles_on(app):
            assert style.color is not None, name
            assert style.color.is_default, name
            assert style.bgcolor is not None, name
            assert style.bgcolor.is_default, name


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
async def test_without_colours_the_chosen_row_a_heading_a_link_and_what_is_strong_differ_from_the_rest(
    theme: str,
) -> None:
    app = SmallApp(Sample(), theme=theme)
    async with app.run_test() as pilot:
        await pilot.pause()
        looks = Painter(app.query_one(Sample))
        bare = looks.style().without_color
        apart = {str(looks.style(name).without_color) for name in ("chosen", "heading", "link", "strong", "emphasis")}
        assert len(apart) == 5
        assert str(bare) not in apart
        assert looks.style("heading chosen").reverse


@pytest.mark.parametrize(("theme", "no_color"), [(PLAIN_THEME, ""), (PLAIN_THEME, "1"), ("rune-dark", "1")])
async def test_without_colours_code_and_a_placeholder_still_look_like_what_they_are(
    theme: str, no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    line_of_text, area = Input(placeholder="line hint"), TextArea(placeholder="area hint")
    app = SmallApp(Sample(), line_of_text, area, theme=theme)
    async with app.run_test(size=(80, 60)) as pilot:
        app.set_focus(None)
        await pilot.pause()
        looks = Painter(app.query_one(Sample))
        told_apart = {str(looks.style(name).without_color) for name in ("", "code", "link", "strong", "emphasis")}
        assert len(told_apart) == 5
        assert looks.style("code chosen").reverse
        # There is no public way to see what is sent.
        strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # tests look inside
        hints = [style for strip in strips for text, style, _ in strip if "hint" in text]
        assert len(hints) == 2
        assert all(style is not None and style.italic for style in hints)


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
async def test_where_colours_are_not_wanted_none_is_painted_and_nothing_is_invisible(
    theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = TypingApp(theme=theme, ansi=True)
    async with app.run_test(size=(80, 60)) as pilot:
        app.query_one(TextArea).select_all()
        app.query_one(TextArea).focus()
        await pilot.pause()
        assert {"chosen", "selected"} <= reversed_texts(app)
        entry = app.query_one(Input)
        entry.focus()
        entry.action_end()
        await pilot.pause()
        row = painted(app)[entry.region.y + 1]
        assert any(style is not None and style.reverse and text.isspace() for text, style, _ in row)
        entry.action_select_all()
        await pilot.pause()
        assert "typed" in reversed_texts(app)


def painted(app: SmallApp) -> list[Strip]:
    """Return the rows as they are painted; none of their colours is any but the terminal's own."""
    # There is no public way to see what is sent.
    strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # tests look inside
    for strip in strips:
        for _, style, _ in strip:
            assert style is not None
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
    return strips


def reversed_texts(app: SmallApp) -> set[str]:
    """Return which texts are painted with their colours exchanged."""
    return {text.strip() for strip in painted(app) for text, style, _ in strip if style is not None and style.reverse}


async def test_a_theme_of_textuals_own_paints_every_style_too() -> None:
    app = SmallApp(Sample(), theme="textual-light")
    async with app.run_test() as pilot:
        await pilot.pause()
        assert all(contrast(style) > 2 for _, style in styles_on(app))


async def test_changing_the_theme_repaints_what_is_shown() -> None:
    app = SmallApp(Sample())
    async with app.run_test() as pilot:
        await pilot.pause()
        sample = app.query_one(Sample)
        dark = sample.render_line(0)
        app.theme = "rune-light"
        await pilot.pause()
        assert sample.render_line(0) != dark


def test_the_default_is_one_of_them() -> None:
    assert DEFAULT_THEME in {theme.name for theme in THEMES}
    assert len({theme.name for theme in THEMES}) == len(THEMES)


@pytest.mark.parametrize(("environ", "wanted"), [({}, False), ({"NO_COLOR": ""}, False), ({"NO_COLOR": "1"}, True)])
def test_no_color_counts_when_it_is_not_empty(environ: dict[str, str], wanted: bool) -> None:
    assert wants_no_colour(environ) is wanted
