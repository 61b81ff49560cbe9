/* The style sheet of every page: light and dark by the reader's setting, one column on
 * a narrow screen. */
#include "page/page_priv.h"

#include <stddef.h>

const char *const sti_page_style[] = {
    ":root{color-scheme:light dark;--page:#f7f7f5;--card:#fff;--ink:#1d1d1b;"
    "--soft:#66655f;--line:#e4e3de;--grid:#ecebe6;--first:#2f6fd0;--second:#d2601a;"
    "--plain:#2f7d5b;--bad:#b3261e;--track:#eeede9;--good:#2f7d5b}\n",
    "@media(prefers-color-scheme:dark){:root{--page:#151515;--card:#1e1e1d;"
    "--ink:#ececea;--soft:#a3a29b;--line:#33332f;--grid:#2b2b28;--first:#78a9f5;"
    "--second:#f0935a;--plain:#6cc09a;--bad:#ff8a80;--track:#2c2c29;"
    "--good:#6cc09a}}\n",
    "*{box-sizing:border-box}\n",
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,"
    "-apple-system,'Segoe UI',Roboto,'Helvetica Neue',sans-serif}\n",
    "main{max-width:1120px;margin:0 auto;padding:40px 24px 56px}\n",
    "h1{font-size:30px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em;"
    "overflow-wrap:anywhere}\n",
    "h2{font-size:19px;margin:44px 0 14px;letter-spacing:-.005em}\n",
    ".lead{color:var(--soft);margin:0 0 26px;overflow-wrap:anywhere}\n",
    ".note{color:var(--soft);font-size:14px;margin:0 0 14px}\n",
    ".state{display:inline-block;padding:1px 10px;border-radius:99px;font-size:13px;"
    "border:1px solid currentColor;margin-right:8px}\n",
    ".state.ok{color:var(--good)}.state.not{color:var(--bad)}\n",
    /* cards */
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "margin:0;padding:16px 18px;min-width:0}\n",
    ".figures{display:grid;gap:14px;grid-template-columns:repeat(auto-fit,"
    "minmax(164px,1fr))}\n",
    ".figures b{display:block;font-size:22px;line-height:1.35;font-weight:600;"
    "letter-spacing:-.01em;white-space:nowrap;overflow:hidden;"
    "text-overflow:ellipsis}\n",
    ".figures span{display:block;color:var(--soft);font-size:13.5px}\n",
    ".columns{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,"
    "minmax(min(100%,430px),1fr));align-items:start}\n",
    /* charts */
    "figcaption{font-size:14.5px}\n",
    ".chart figcaption{display:flex;flex-wrap:wrap;gap:4px 16px;justify-content:"
    "space-between;margin-bottom:8px}\n",
    ".legend{display:flex;flex-wrap:wrap;gap:4px "
    "14px;color:var(--soft);font-size:13px}\n",
    ".key{display:inline-block;width:18px;height:3px;border-radius:2px;"
    "vertical-align:middle;margin-right:6px;background:var(--plain)}\n",
    ".key.first{background:var(--first)}.key.second{background:var(--second)}"
    ".key.faint{background:var(--first);opacity:.5}\n",
    "svg{display:block;width:100%;height:auto}\n",
    "svg text{fill:var(--soft);font:12.5px system-ui,-apple-system,'Segoe UI',Roboto,"
    "sans-serif}\n",
    ".grid{stroke:var(--grid)}.axis{stroke:var(--soft);stroke-opacity:.6}\n",
    ".curve{fill:none;stroke:var(--plain);stroke-width:2;stroke-linejoin:round;"
    "stroke-linecap:round}\n",
    ".curve.first{stroke:var(--first)}.curve.second{stroke:var(--second)}"
    ".curve.faint{stroke:var(--first);stroke-opacity:.5;stroke-width:1.3}\n",
    ".dot{fill:var(--plain)}.dot.first{fill:var(--first)}.dot.second{fill:"
    "var(--second)}.dot.faint{fill:var(--first);fill-opacity:.5}\n",
    ".strips text{fill:var(--ink)}.strips .title{font-weight:600}"
    ".strips .value{fill:var(--soft)}.rail{stroke:var(--line)}"
    ".mark{fill:var(--first)}\n",
    ".wide{overflow-x:auto}.strips svg{min-width:600px;max-width:820px}\n",
    ".card+.card,.card+.columns,.columns+.card{margin-top:16px}"
    ".figures .card,.columns .card{margin-top:0}\n",
    /* tables */
    "table{width:100%;border-collapse:collapse;font-size:14.5px}\n",
    "th{font-weight:500;text-align:left;color:var(--soft);font-size:13px;"
    "padding:0 0 8px;vertical-align:bottom}\n",
    "td{padding:7px 0;border-top:1px solid var(--line);vertical-align:middle}\n",
    ".n{text-align:right;padding-left:14px;font-variant-numeric:tabular-nums}\n",
    "td.n{white-space:nowrap}\n", ".bars{width:42%;padding-left:18px}\n",
    "td "
    "small{display:block;color:var(--soft);font-size:12.5px;line-height:1.35}\n",
    "tr.sum td{font-weight:600}\n",
    "details{margin-top:12px}summary{cursor:pointer;color:var(--soft);font-size:14px}"
    "details[open] summary{margin-bottom:10px}\n",
    /* bars and shares */
    ".bar{display:block;height:7px;border-radius:4px;background:var(--first);"
    "min-width:2px;margin:2px 0}\n",
    ".bar.second{background:var(--second)}\n",
    ".shares{display:grid;gap:7px 28px;grid-template-columns:repeat(auto-fill,"
    "minmax(min(100%,calc(var(--name) + 146px)),1fr))}\n",
    ".share{display:grid;grid-template-columns:var(--name) 1fr 62px;gap:10px;"
    "align-items:center;font-size:14px}\n",
    ".share>span:first-child{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}"
    "\n",
    ".share>span:last-child{text-align:right;color:var(--soft);"
    "font-variant-numeric:tabular-nums}\n",
    ".track{background:var(--track);border-radius:4px}.track .bar{margin:0}\n",
    /* pictures */
    ".sheet{display:grid;gap:18px 14px;grid-template-columns:repeat(auto-fill,"
    "minmax(104px,1fr))}\n",
    ".sheet.large{grid-template-columns:repeat(3,minmax(0,1fr))}\n",
    ".sheet figure{margin:0;min-width:0}\n",
    ".sheet img{display:block;width:100%;image-rendering:pixelated;border-radius:6px;"
    "background:var(--track);border:1px solid var(--line)}\n",
    ".sheet figcaption{font-size:13px;line-height:1.4;color:var(--soft);margin-top:6px;"
    "overflow-wrap:anywhere}\n",
    ".sheet figcaption b{color:var(--ink);font-weight:600}"
    ".sheet figcaption b.bad{color:var(--bad)}\n",
    /* words */
    "pre{margin:0;overflow-x:auto;font:13px/1.55 ui-monospace,'SF Mono',Menlo,Consolas,"
    "monospace}\n",
    "dl{display:grid;grid-template-columns:auto minmax(0,1fr);gap:6px 18px;margin:0;"
    "font-size:14.5px}\n",
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n",
    "footer{margin-top:44px;color:var(--soft);font-size:13px}\n",
    "@media(max-width:560px){main{padding:24px 14px 40px}h1{font-size:24px}"
    ".figures{grid-template-columns:1fr 1fr;gap:10px}.figures "
    "b{font-size:20px;white-space:normal}"
    ".card{padding:13px 14px}.barred tr{display:grid;grid-template-columns:1fr 84px "
    "84px;border-top:1px solid var(--line);padding:7px 0}"
    ".barred tr:first-child{border:0;padding:0}.barred td{border:0;padding:0}"
    ".barred .bars{grid-column:1/-1;width:auto;padding:4px 0 0}"
    "table:not(.barred){width:auto;min-width:100%}"
    "svg text{font-size:14.5px}.strips text{font-size:12.5px}"
    ".sheet:not(.large){grid-template-columns:repeat(auto-fill,minmax(88px,1fr))}}\n",
    "@media print{body{background:#fff}.card{break-inside:avoid}}\n", NULL};
