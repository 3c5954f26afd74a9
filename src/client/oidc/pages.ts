/** The pages that the browser shows after a login. They never repeat parts of a request. */

const PAGES = {
  done: ['You are logged in', 'Close this page and go back to the terminal.'],
  failed: ['The login failed', 'The terminal shows the reason. You may close this page.'],
  foreign: [
    'This page does not exist',
    'This address only accepts the response to a login that a program on this machine started.',
  ],
  over: ['This login has ended', 'Its response arrived before. You may close this page.'],
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

/** Headers of a page whose address contains the code: no cache, frame or referrer may have it. */
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
