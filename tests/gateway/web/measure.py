"""What a page costs: frames while it scrolls, heap, the longest task."""

from typing import Any

FRAMES = """async () => {
  const list = document.querySelector('.vlist'), frames = [];
  let last = performance.now(), step = -240;
  const end = last + 4000;
  while (last < end) {
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
    list.scrollTop += step;
    if (list.scrollTop <= 0) step = 240;
  }
  frames.sort((a, b) => a - b);
  const at = (share) => Math.round(frames[Math.floor(frames.length * share)] * 10) / 10;
  return { frames: frames.length, p50: at(0.5), p95: at(0.95) };
}"""
LONGEST_TASK = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.longest = Math.max(window.longest, one.duration);
}).observe({ type: 'longtask', buffered: true });
"""


def heap(page: Any) -> float:
    """Megabytes of the script's heap, after a collection."""
    return page.evaluate("(gc(), performance.memory.usedJSHeapSize / 1e6)")


def task_seconds(page: Any) -> float:
    """Milliseconds of the longest task since the page was loaded."""
    return page.evaluate("window.longest")


PAINTED = """async ([hash, wait]) => {
  performance.clearResourceTimings();
  let changed = 0;
  const watch = new MutationObserver(() => {
    const now = performance.now();
    requestAnimationFrame(() => { changed = Math.max(changed, performance.now()); });
    changed = Math.max(changed, now);
  });
  const all = { subtree: true, childList: true, attributes: true, characterData: true };
  watch.observe(document.body, all);
  location.hash = hash;
  await new Promise((done) => setTimeout(done, wait));
  watch.disconnect();
  const data = performance.getEntriesByType('resource')
    .filter((one) => one.name.includes('/api/') && !one.name.includes('/live'));
  return Math.round(changed - Math.max(0, ...data.map((one) => one.responseEnd)));
}"""
"""Milliseconds from the last byte of a page's data to its last change."""
