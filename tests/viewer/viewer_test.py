#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operates the pages in a headless Chromium and checks what they show.

    viewer_test.py SAMPLE PEAL [FOLDER]     SAMPLE: the program report-page-sample, PEAL: the command
                                            FOLDER: gets a screenshot of every page

Ends with 77 (skipped) if there is no Chromium.
"""
import os
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import browser as web  # noqa: E402

SAMPLE, PEAL = sys.argv[1:3]
PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


def check(name, actual, expected):
    assert actual == expected, "%s is %r, expected %r" % (name, actual, expected)


def current_step(page):
    return page.evaluate("document.querySelector('.steps [aria-current]').textContent")


def lit_line(page):
    return page.evaluate("(() => { const l = document.querySelector('.source .lit'); return l ? Number(l.firstChild.textContent) : 0; })()")


def view(page):
    return page.evaluate("(({from, to, top, row}) => [from, to, top, row])(pealPage.diagram.view)")


def a_counterexample_opens_at_its_collision(page):
    check("title", page.text("#title"), "allreduce_slot")
    check("verdict", page.text("#verdict"), "refuted at 3 ranks")
    assert "race: rank 0 writes" in page.text("#headline")
    check("step", page.text("#step-count"), "15 of 15")
    check("lit line", lit_line(page), 13)
    check("red lines", page.evaluate("[...document.querySelectorAll('.source .bad')].map(l => Number(l.firstChild.textContent))"), [9, 13])
    marks = page.evaluate("[...document.querySelectorAll('.mark.bad')].map(m => m.textContent)")
    check("colliding accesses", marks, ["rank 0 writes [0 .. 256)", "rank 1 reads [0 .. 256)"])


def steps_go_forward_and_back(page):
    page.click("#step-first")
    check("step", page.text("#step-count"), "0 of 15")
    check("text", page.text("#step-text"), "before the first step")
    check("cells", page.evaluate("[...document.querySelectorAll('.cell b')].map(c => c.textContent)"), ["0", "0", "0"])
    check("unwritten slots", page.evaluate("document.querySelectorAll('.strip .unset').length"), 3)
    for _ in range(4):
        page.click("#step-next")
    check("text", page.text("#step-text"), "rank 0: notify left@1 += 1")
    check("lit line", lit_line(page), 10)
    check("changed cell", page.evaluate("[...document.querySelectorAll('.cell.changed')].map(c => c.textContent)"), ["left0 → 1"])
    check("slot of rank 0", page.evaluate("document.querySelector('.rank .strip').textContent"), "x0[0]")
    page.click("#step-back")
    check("step", page.text("#step-count"), "3 of 15")
    check("cells", page.evaluate("[...document.querySelectorAll('.cell b')].map(c => c.textContent)"), ["0", "0", "0"])
    page.click(".steps li:nth-child(9)")
    check("step", page.text("#step-count"), "9 of 15")
    assert "compute y = op(y, slot@2)" in current_step(page)


def the_keyboard_does_it_all(page):
    page.evaluate("document.getElementById('diagram').focus()")
    page.key("Home")
    check("step", page.text("#step-count"), "0 of 15")
    page.key("n")
    page.key("n")
    page.key("p")
    check("step", page.text("#step-count"), "1 of 15")
    page.key("End")
    check("step", page.text("#step-count"), "15 of 15")
    page.key("?")
    assert page.evaluate("document.getElementById('help').open"), "help is not open"
    assert "step forward or back" in page.text("#help")
    page.key("Escape")
    assert not page.evaluate("document.getElementById('help').open"), "help is still open"
    before = page.evaluate("document.documentElement.dataset.theme")
    page.key("t")
    after = page.evaluate("document.documentElement.dataset.theme")
    check("themes", {before, after}, {"light", "dark"})
    page.key("t")
    page.key("/")
    check("focus", page.evaluate("document.activeElement.id"), "search")
    page.key("Escape")
    check("focus", page.evaluate("document.activeElement.id"), "diagram")


def filters_and_search_narrow_it(page):
    page.click("#filter")
    page.type("1-2")
    check("rows", page.evaluate("pealPage.diagram.rows.length"), 2)
    check("cards", page.evaluate("document.querySelectorAll('.rank').length"), 2)
    page.evaluate("document.getElementById('filter').select()")
    page.type("1-x")
    check("invalid", page.evaluate("document.getElementById('filter').getAttribute('aria-invalid')"), "true")
    check("rows", page.evaluate("pealPage.diagram.rows.length"), 2)
    page.evaluate("pealPage.setFilter('')")
    page.click("#search")
    page.type("notify")
    check("found", page.text("#search-count"), "5")
    page.key("Enter")
    check("found", page.text("#search-count"), "1 / 5")
    check("step", page.text("#step-count"), "4 of 15")
    page.evaluate("document.getElementById('search').value = ''; pealPage.search('')")


def clicking_a_bar_goes_to_its_step(page):
    x, y = page.evaluate("(() => { const d = pealPage.diagram, b = d.canvas.getBoundingClientRect();"
                         " return [b.left + d.xOf(4.5), b.top + d.yOf(1) + d.rowHeight() / 2]; })()")
    page.click_at(x, y)
    check("step", page.text("#step-count"), "5 of 15")
    page.mouse("mouseMoved", x + 1, y)
    page.settle()
    tip = page.text("#tooltip")
    assert "notify left@2 += 1" in tip and "allreduce_slot.peal:10" in tip and "rank 1" in tip, tip


def a_simulation_zooms_and_pans(page):
    left, top, width, height = page.box("#diagram")
    whole = view(page)
    page.wheel(left + width / 2, top + height / 2, -400)
    zoomed = view(page)
    assert zoomed[1] - zoomed[0] < 0.7 * (whole[1] - whole[0]), (whole, zoomed)
    page.drag(left + width / 2, top + height / 2, left + width / 2 - 100, top + height / 2)
    assert view(page)[0] > zoomed[0], "dragging to the left does not move on in time"
    page.evaluate("document.getElementById('diagram').focus()")
    page.key("0")
    check("view", view(page)[:2], whole[:2])
    for _ in range(3):
        page.key("+")
    zoomed = view(page)
    page.key("ArrowRight")
    assert view(page)[0] > zoomed[0]
    page.key("]")
    page.key("]")
    assert "recv" in page.text(".details-panel h2") or "compute" in page.text(".details-panel h2"), page.text(".details-panel")
    assert lit_line(page) > 0
    page.key("j")
    check("row", page.evaluate("pealPage.model.bars.track[pealPage.diagram.selected]"), 1)


def a_simulation_shows_its_panels(page):
    names = page.evaluate("[...document.querySelectorAll('[role=tab]')].map(t => t.textContent)")
    check("tabs", names, ["Source", "Critical path", "Stalls", "Machine"])
    page.click("#tab-1")
    assert "serialisation" in page.text("#panel-1")
    rows = page.evaluate("document.querySelectorAll('#panel-1 tr.pick').length")
    check("parts of the path", rows, 90)
    page.click("#panel-1 tr.pick")
    page.click("#tab-2")
    check("ranks that waited", page.evaluate("document.querySelectorAll('#panel-2 tr.pick').length"), 16)
    page.click("#tab-3")
    assert "90 % busiest link" in page.text("#panel-3"), page.text("#panel-3")
    assert "pe 2,2 → pe 3,2" in page.text("#panel-3 .under")
    x, y = page.evaluate("(() => { const m = pealPage.machine, b = m.canvas.getBoundingClientRect(), [x, y] = m.at(m.model.nodes[6]);"
                         " return [b.left + x, b.top + y]; })()")
    page.click_at(x, y)
    check("filter", page.evaluate("document.getElementById('filter').value"), "6")
    check("rows", page.evaluate("pealPage.diagram.rows.length"), 1)
    page.evaluate("pealPage.setFilter('')")
    page.key("c")
    check("path shown", page.evaluate("pealPage.diagram.showPath"), False)
    check("button", page.evaluate("document.getElementById('path-button').getAttribute('aria-pressed')"), "false")


def a_long_bar_after_short_ones_is_drawn(page):
    """A bar that begins in the pixel column of a shorter one must not be skipped with it."""
    page.evaluate("pealPage.diagram.fit()")
    colours = page.evaluate("""(() => {
        const d = pealPage.diagram, bars = d.model.bars, c = d.canvas.getContext('2d'), found = [];
        d.showArrows = d.showPath = false;
        d.paint();
        for (const i of [2, 5, 8]) {
            const x = d.xOf((bars.start[i] + bars.end[i]) / 2), y = d.yOf(0) + d.rowHeight() - 5;
            const pixel = c.getImageData(Math.round(x), Math.round(y), 1, 1).data;
            found.push('#' + [...pixel].slice(0, 3).map(v => v.toString(16).padStart(2, '0')).join('') === d.colours.category[bars.category[i]]);
        }
        d.showArrows = d.showPath = true;
        d.draw();
        return found; })()""")
    check("bars in their colour", colours, [True, True, True])


def a_sweep_shows_plots_and_table(page):
    check("plots", page.evaluate("document.querySelectorAll('.plot').length"), 2)
    check("marks", page.evaluate("document.querySelectorAll('.plot:first-child circle').length"), 18)
    assert page.evaluate("document.querySelectorAll('.plot polyline[stroke-dasharray]').length") == 1, "no closed form"
    check("rows", page.evaluate("document.querySelectorAll('#tables tbody tr').length"), 18)
    page.evaluate("document.querySelector('.plot circle').focus()")
    assert page.text(".plot .empty").startswith("ring: 1KiB → "), page.text(".plot .empty")


def a_thousand_ranks_open_and_move(page):
    check("rows", page.evaluate("pealPage.diagram.rows.length"), 1024)
    assert "6285312 operations are drawn as" in page.text("#notes"), page.text("#notes")
    frames = page.evaluate("""new Promise(done => {
        const d = pealPage.diagram;
        let painted = 0;
        const paint = d.paint.bind(d);
        d.paint = () => { painted++; paint(); };
        const move = n => {
            if (n === 0) return done(painted);
            d.zoom(0.9);
            d.scroll(40);
            requestAnimationFrame(() => move(n - 1));
        };
        move(40);
    })""")
    assert frames >= 20, "only %d frames were drawn" % frames
    drawn = page.evaluate("pealPage.diagram.drawnArrows.length")
    assert drawn <= 1600, "%d arrows at once" % drawn
    page.evaluate("pealPage.diagram.fit()")
    page.settle()


def hostile_texts_stay_texts(page):
    check("pwned", page.evaluate("document.documentElement.dataset.pwned === undefined"), True)
    check("scripts", page.evaluate("document.scripts.length"), 2)
    check("images", page.evaluate("document.images.length"), 0)
    assert page.text("#title").startswith("</script><script>")
    check("csp", page.evaluate("""(() => {
        const s = document.createElement('script');
        s.textContent = 'document.documentElement.dataset.pwned = 1';
        document.body.append(s);
        return document.documentElement.dataset.pwned === undefined; })()"""), True)


def a_narrow_window_has_no_sideways_scrolling(page):
    page.resize(420, 900)
    page.settle()
    check("overflow", page.evaluate("document.documentElement.scrollWidth <= innerWidth"), True)
    page.resize(1280, 800)
    page.settle()


def a_real_race_is_shown(page):
    check("verdict", page.text("#verdict"), "refuted at 3 ranks")
    assert page.text("#headline").startswith("race: "), page.text("#headline")
    marks = page.evaluate("[...document.querySelectorAll('.mark.bad')].map(m => m.textContent)")
    check("colliding accesses", marks, ["rank 0 writes [0 .. 4)", "rank 1 reads [0 .. 4)"])
    check("red lines", page.evaluate("[...document.querySelectorAll('.source .bad')].map(l => Number(l.firstChild.textContent))"), [11, 15])
    sums = page.evaluate("[...document.querySelectorAll('.becomes')].map(b => b.textContent)")
    check("what it becomes", sums, ["[8 .. 12) = x@1[8 .. 12) + (x@0 + x@2)[4 .. 8)"])
    page.key("Home")
    check("cells", page.evaluate("[...document.querySelectorAll('.cell b')].map(c => c.textContent)"), ["0", "0", "0"])


def a_sequence_says_what_was_launched(page):
    facts = page.text("#facts")
    assert "launched with" in facts and "root 0, then" in facts, facts
    steps = page.evaluate("[...document.querySelectorAll('.steps li')].map(l => l.textContent)")
    # Launches count from 0, as on a terminal and in `launch mod 2`.
    assert any("launch 0" in step for step in steps) and any("launch 1" in step for step in steps), steps
    assert not any("launch 2" in step for step in steps), steps


def a_real_proof_has_a_schedule(page):
    check("verdict", page.text("#verdict"), "proved")
    check("rows", page.evaluate("pealPage.diagram.rows.length"), 4)
    assert page.evaluate("pealPage.model.arrows.count") > 0
    assert "one launch on 4 ranks" in page.text("#notes"), page.text("#notes")
    assert "kernels/allreduce.peal" in page.text(".source-head"), page.text(".source-head")


def a_real_run_is_drawn(page):
    check("verdict", page.text("#verdict"), "right")
    check("rows", page.evaluate("pealPage.diagram.rows.length"), 3)
    ops = page.evaluate("pealPage.model.bars.count")
    assert ops % 3 == 0 and ops > 12, ops
    check("order", page.evaluate("""(() => { const b = pealPage.model.bars;
        for (let i = 1; i < b.count; i++)
            if (b.track[i] === b.track[i - 1] && b.start[i] < b.end[i - 1]) return false;
        return true; })()"""), True)
    check("tabs", page.evaluate("[...document.querySelectorAll('[role=tab]')].map(t => t.textContent)"), ["Source", "Time by operation"])


def a_real_simulation_is_drawn(page):
    check("rows", page.evaluate("pealPage.diagram.rows.length"), 16)
    check("tabs", page.evaluate("[...document.querySelectorAll('[role=tab]')].map(t => t.textContent)"),
          ["Source", "Critical path", "Stalls", "Machine"])
    check("nodes", page.evaluate("pealPage.model.nodes.length"), 16)
    # The critical path begins at 0 and has no gaps.
    check("path", page.evaluate("""(() => { const p = pealPage.model.path;
        return p[0].start === 0 && p.every((hop, i) => i === 0 || hop.start === p[i - 1].end); })()"""), True)
    assert page.evaluate("pealPage.model.series.length") >= 2
    page.click("#group-buttons button")
    check("rows with engines", page.evaluate("pealPage.diagram.rows.length"), 64)


def a_real_sweep_is_plotted(page):
    check("plots", page.evaluate("document.querySelectorAll('.plot').length"), 2)
    check("marks", page.evaluate("document.querySelectorAll('.plot:first-child circle').length"), 6)
    check("rows", page.evaluate("document.querySelectorAll('#tables tbody tr').length"), 6)
    texts = page.evaluate("[...document.querySelectorAll('.plot:first-child text')].map(t => t.textContent)")
    times = [text for text in texts if text.endswith("s") and text[0].isdigit()]
    assert times and all(text.lstrip("0.").startswith(("1", "2", "5")) for text in times), texts


TESTS = [
    ("counterexample", [a_counterexample_opens_at_its_collision, steps_go_forward_and_back, the_keyboard_does_it_all,
                        filters_and_search_narrow_it, clicking_a_bar_goes_to_its_step, a_narrow_window_has_no_sideways_scrolling]),
    ("simulation", [a_long_bar_after_short_ones_is_drawn, a_simulation_zooms_and_pans, a_simulation_shows_its_panels, a_narrow_window_has_no_sideways_scrolling]),
    ("sweep", [a_sweep_shows_plots_and_table, a_narrow_window_has_no_sideways_scrolling]),
    ("large", [a_thousand_ranks_open_and_move]),
    ("hostile", [hostile_texts_stay_texts]),
]

# Pages that the command writes: name, arguments, exit code, tests.
COMMANDS = [
    ("race", ["verify", os.path.join(HERE, "cheap_barrier.peal"), "-n", "2..3", "--count", "12"], 1, [a_real_race_is_shown]),
    ("sequence", ["verify", os.path.join(TOP, "tests", "hazards", "h23_root_changes.peal"), "-n", "3"], 1,
     [a_sequence_says_what_was_launched]),
    ("proof", ["verify", "allreduce_ring", "-n", "2..5"], 0, [a_real_proof_has_a_schedule]),
    ("sim", ["sim", "allreduce_ring", "-m", os.path.join(TOP, "machines", "mesh4x4.yaml"), "--count", "16K"], 0,
     [a_real_simulation_is_drawn]),
    ("real-sweep", ["sweep", "allreduce_ring", "allreduce_tree", "-m", os.path.join(TOP, "machines", "mesh4x4.yaml"), "-n", "16",
                    "--count", "1K,4K,16K"], 0, [a_real_sweep_is_plotted]),
    ("run", ["run", "allreduce_ring", "-n", "3", "--count", "1K", "--launches", "3"], 0, [a_real_run_is_drawn]),
]


def make_sample(kind, path):
    subprocess.run([SAMPLE, kind, path], check=True)


def make_page(args, code, path):
    done = subprocess.run([PEAL, *args, "--html", path], capture_output=True, text=True, timeout=1500)
    assert done.returncode == code, "peal %s ended with %d: %s" % (" ".join(args), done.returncode, done.stderr)


def run_page(browser, path, kind, tests):
    page = browser.open(path)
    failed = 0
    if PICTURES:
        page.screenshot(os.path.join(PICTURES, kind + ".png"))
    for test in tests:
        name = kind + ": " + test.__name__.replace("_", " ")
        try:
            test(page)
            print("ok    " + name)
        except Exception:  # noqa: BLE001: any exception is a failed test
            failed += 1
            print("FAIL  " + name)
            traceback.print_exc(file=sys.stdout)
    complaints = [text for text in page.complaints()
                  if "willReadFrequently" not in text and ("Content Security Policy" not in text or kind != "hostile")]
    if complaints:
        failed += 1
        print("FAIL  " + kind + ": the browser complains: " + "; ".join(complaints))
    return failed


def main():
    if not web.find_browser():
        print("skipped: no chromium on this machine")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="peal-viewer-") as folder, web.Browser() as browser:
        for kind, tests in TESTS:
            path = os.path.join(folder, kind + ".html")
            make_sample(kind, path)
            failed += run_page(browser, path, kind, tests)
        for kind, args, code, tests in COMMANDS:
            path = os.path.join(folder, kind + ".html")
            make_page(args, code, path)
            failed += run_page(browser, path, kind, tests)
    return 1 if failed else 0


sys.exit(main())
