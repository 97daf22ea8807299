#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the playground in a headless Chromium, from disk, as a person would.

    page_test.py FOLDER [PICTURES]     FOLDER: where scripts/wasm builds; PICTURES: a folder for screenshots

Builds it first. Ends with 77 (skipped) without emscripten, npm or Chromium.
"""
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, "tests", "viewer"), os.path.join(TOP, "tests", "lib")]
sys.dont_write_bytecode = True
import browser as web  # noqa: E402
from tap import Tap, expect  # noqa: E402

FOLDER = os.path.abspath(sys.argv[1])
PICTURES = sys.argv[2] if len(sys.argv) > 2 else None
INDEX = os.path.join(FOLDER, "playground", "index.html")
MAX_COMPRESSED = 3000000
LONG = "hazards/h16_left_over_flags"  # minutes of proof at 2 to 16 ranks


def wait(page, condition):
    """Until the condition holds; the limit only ends hangs."""
    deadline = time.monotonic() + 900
    while not page.evaluate(condition):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition}; the page says: {page.text('#verdict')} {page.text('#message')}")
        time.sleep(0.05)


def wait_verdict(page, verdict):
    wait(page, "!playground.running && document.getElementById('verdict').textContent !== ''")
    expect(page.text("#verdict") == verdict, page.text("#verdict"), page.text("#message"), page.text("#text"))


def set_text(page, text):
    page.evaluate(f"playground.editor.text = {text!r}")


def set_field(page, field, value):
    page.evaluate(f"document.getElementById('{field}').value = {value!r}")


def text_of(page):
    return page.evaluate("playground.editor.text")


def load(page, example):
    page.click("#examples-button")
    page.evaluate(f"document.querySelector('[data-id=\"{example}\"]').click()")
    wait(page, "!document.getElementById('gallery').open && playground.editor.text.includes('kernel')")


def inner(page, expression):
    return page.evaluate(f"(frame => {expression})(document.getElementById('page').contentWindow)")


def picture(page, name):
    if PICTURES:
        page.settle()
        page.screenshot(os.path.join(PICTURES, name + ".png"))


def the_first_draft_is_refuted_step_by_step(page):
    expect("kernel sum(" in text_of(page), text_of(page))
    page.click("#prove")
    wait_verdict(page, "refuted")
    expect("race" in page.text("#message"), page.text("#message"))
    wait(page, "Boolean(document.getElementById('page').contentWindow.pealPage)")
    steps = inner(page, "frame.document.getElementById('step-count').textContent")
    last = steps.split()[-1]
    expect(steps == f"{last} of {last}", steps)
    inner(page, "frame.document.getElementById('step-first').click()")
    expect(inner(page, "frame.document.getElementById('step-count').textContent") == f"0 of {last}")
    inner(page, "frame.document.getElementById('step-next').click()")
    expect(inner(page, "frame.document.getElementById('step-count').textContent") == f"1 of {last}")
    expect(inner(page, "frame.document.getElementById('step-text').textContent").startswith("rank "))
    picture(page, "refuted")


def the_broken_text_says_where(page):
    set_text(page, text_of(page).replace("slot = x", "slot = z"))
    wait(page, "document.querySelector('.cm-lint-marker-error') !== null")
    page.click("#prove")
    wait_verdict(page, "not read")
    expect("line 5" in page.text("#message") and "unknown name 'z'" in page.text("#message"), page.text("#message"))
    picture(page, "broken")


def a_second_wave_proves_it(page):
    fixed = text_of(page).replace("slot = z", "slot = x").replace("ready[nranks]", "ready[nranks], taken[nranks]").replace(
        "y = final(op, acc)", "y = final(op, acc)\n    for p in peers { notify taken[rank]@p += 1 }\n    for p in peers { wait taken[p] >= 1 }")
    set_text(page, fixed)
    page.click("#prove")
    wait_verdict(page, "proved")
    expect("2..4 ranks" in page.text("#message"), page.text("#message"))
    expect("every schedule" in page.text("#text"), page.text("#text"))


def a_simulation_has_a_time_and_a_machine(page):
    page.click("#simulate")
    wait_verdict(page, "simulated")
    expect("µs" in page.text("#message"), page.text("#message"))
    wait(page, "Boolean((document.getElementById('page').contentWindow.pealPage || {}).machine)")
    expect("Machine" in inner(page, "frame.document.getElementById('tabs').textContent"))
    picture(page, "simulated")


def a_link_has_text_and_settings(page, browser):
    set_field(page, "ranks", "2,3")
    set_text(page, "// \u00e4\u00f6\u4e2d\n" + text_of(page))
    page.evaluate("playground.share()")
    link = page.evaluate("location.href")
    other = browser.open(link, 1280, 800)
    wait(other, "playground.editor.text !== ''")
    expect(text_of(other) == text_of(page), text_of(other))
    expect(other.evaluate("document.getElementById('ranks').value") == "2,3")
    broken = browser.open("file://" + INDEX + "#1abcdefgh", 1280, 800)
    wait(broken, "document.getElementById('verdict').textContent !== ''")
    expect(broken.text("#verdict") == "no link", broken.text("#verdict"))
    page.call("Page.bringToFront")  # a page behind others draws nothing


def a_known_bug_comes_with_its_story(page):
    load(page, "museum/aiter-3515/bug")
    expect("What happened" in page.text("#story"), page.text("#story"))
    page.click("#prove")
    wait_verdict(page, "refuted")
    load(page, "museum/aiter-3515/fix")
    page.click("#prove")
    wait_verdict(page, "proved")


def a_library_kernel_is_proved_for_every_number_of_ranks(page):
    load(page, "kernels/allreduce_mesh")
    wait(page, "playground.editor.text.includes('allreduce_mesh')")
    set_field(page, "ranks", "all")
    page.click("#prove")
    wait_verdict(page, "proved")
    expect("every number of ranks" in page.text("#text"), page.text("#text"))


def a_fix_is_found(page):
    load(page, "hazards/h05_one_slot_one_neighbour_wait")
    page.click("#prove")
    wait_verdict(page, "refuted")
    before = text_of(page)
    page.click("#fix")
    wait(page, "!playground.running")
    expect((page.text("#verdict") == "fixed") == (text_of(page) != before), page.text("#verdict"), page.text("#text"))


def a_long_proof_is_stopped(page):
    load(page, LONG)
    set_field(page, "ranks", "2..16")
    page.click("#prove")
    wait(page, "/ [1-9][0-9]* s[.]/.test(document.getElementById('message').textContent)")
    page.click("#stop")
    wait_verdict(page, "stopped")
    load(page, "tutorial/2")
    page.click("#prove")
    wait_verdict(page, "proved")


def a_huge_text_does_not_harm(page):
    page.evaluate("playground.editor.text = 'kernel k(in x: T[n], out y: T[n]) {\\n' + '    y = x\\n'.repeat(200000) + '}\\n'")
    page.click("#prove")
    wait(page, "!playground.running")
    expect(page.text("#verdict") not in ("", "failed") and page.text("#message"), page.text("#verdict"), page.text("#message"))
    load(page, "tutorial/2")
    page.click("#prove")
    wait_verdict(page, "proved")


def keys_do_it_too(page):
    load(page, "tutorial/1")
    page.evaluate("playground.editor.view.focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, modifiers=2)
    page.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13, modifiers=2)
    wait_verdict(page, "refuted")


def it_fits_a_phone(browser):
    for dark in (False, True):
        page = browser.open("file://" + INDEX, 375, 740, dark=dark, ratio=2)
        wait(page, "playground.editor.text !== ''")
        expect(page.evaluate("document.documentElement.scrollWidth") == 375, "wider than the phone")
        expect(page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light"))
        picture(page, "phone-dark" if dark else "phone")
        page.click("#prove")
        wait_verdict(page, "refuted")
        expect(page.evaluate("document.documentElement.scrollWidth") == 375, "wider than the phone")
        picture(page, "phone-refuted-dark" if dark else "phone-refuted")


def it_is_small():
    done = subprocess.run(["tar", "-C", os.path.join(FOLDER, "playground"), "-cz", "."], stdout=subprocess.PIPE, check=True)
    expect(len(done.stdout) < MAX_COMPRESSED, f"{len(done.stdout)} bytes")


def it_asks_nobody(page):
    complaints = [one for one in page.complaints() if not one.startswith(("request for blob:", "request for data:"))]
    expect(not complaints, *complaints)


def main():
    missing = [name for name in ("emcc", "npm") if not shutil.which(name)] + ([] if web.find_browser() else ["chromium"])
    if missing:
        print("skipped without", ", ".join(missing))
        return 77
    subprocess.run([os.path.join(TOP, "scripts", "playground"), os.path.join(FOLDER, "playground"), FOLDER], check=True, stdout=subprocess.DEVNULL)
    tap = Tap()
    with web.Browser(timeout_s=900) as browser:
        page = browser.open("file://" + INDEX, 1400, 900)
        wait(page, "playground.editor.text !== ''")
        for test in (the_first_draft_is_refuted_step_by_step, the_broken_text_says_where, a_second_wave_proves_it, a_simulation_has_a_time_and_a_machine):
            tap.run(test.__name__.replace("_", " "), test, page)
        tap.run("a link has text and settings", a_link_has_text_and_settings, page, browser)
        for test in (a_known_bug_comes_with_its_story, a_library_kernel_is_proved_for_every_number_of_ranks, a_fix_is_found, a_long_proof_is_stopped,
                     a_huge_text_does_not_harm, keys_do_it_too):
            tap.run(test.__name__.replace("_", " "), test, page)
        tap.run("it fits a phone", it_fits_a_phone, browser)
        tap.run("it is small", it_is_small)
        tap.run("it asks nobody for anything", it_asks_nobody, page)
    return tap.end()


sys.exit(main())
