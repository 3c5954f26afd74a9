/**
 * The page at `/` for a person who opens the address in a browser. It names the kind of address and
 * the commands to use; it contains no data and no key. Every other client gets the 404 of a path
 * without a route.
 */
import type { RequestId } from '../value/ids.ts'
import { preferredType } from './media-types.ts'

const PAGES = {
  application: page('an application address of svc', [
    'Applications call Functions here, with an Application Key.',
    'To write one, run <code>svc init</code> and <code>svc dev</code>.',
    'How calls look is in <code>svc docs calls</code> and <code>svc docs client</code>.',
  ]),
  management: page('a management address of svc', [
    'Operators and pipelines manage an Environment here, with the program <code>svc</code>.',
    'To log in, run <code>svc login --url</code> with this address.',
    'All commands are in <code>svc docs cli</code>. <a href="/v1/openapi.json">OpenAPI</a>',
  ]),
} as const

/** Returns the page for a browser's request of `/`; null for every other request. */
export function frontPage(
  { headers, method, url }: Request,
  requestId: RequestId,
  origin: keyof typeof PAGES,
): Response | null {
  if (method !== 'GET' || new URL(url).pathname !== '/') return null
  const wanted = preferredType(headers.get('accept'), ['application/json', 'text/html'])
  if (wanted !== 'text/html') return null
  return new Response(PAGES[origin], {
    headers: {
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-service-request-id': requestId,
    },
  })
}

function page(name: string, lines: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>svc</title>
<h1>This is ${name}</h1>
${lines.map((line) => `<p>${line}</p>`).join('\n')}
</html>
`
}
