/** What the person reads in the browser. Nothing of a request is ever repeated in it. */

const PAGES = {
  done: ['You are logged in', 'Close this page and go back to the terminal.'],
  failed: ['The login did not succeed', 'The terminal tells why. You may close this page.'],
  foreign: [
    'This is not the page you look for',
    'This address waits for the answer to a login that a program on this machine began.',
  ],
  over: ['This login is over', 'It was answered before. You may close this page.'],
} as const satisfies Record<string, readonly [string, string]>

export type PageName = keyof typeof PAGES

export function pageOf(name: PageName): string {
  const [title, text] = PAGES[name]
  return [
    '<!doctype html>',
    '<html lang="en">',
    `<head><meta charset="utf-8"><title>${title}</title>`,
    '<style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;',
    'padding:0 1rem;color-scheme:light dark}</style></head>',
    `<body><main><h1>${title}</h1><p>${text}</p></main></body>`,
    '</html>',
    '',
  ].join('\n')
}

/** The address of the page holds the code: it must not be kept, framed or sent on. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}
