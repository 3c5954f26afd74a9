import { expect, test } from 'vitest'
import { TestSystem } from '../system/system.ts'
import { frontPage } from './front-page.ts'

/** The Accept header of Chromium for a page. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'
const ID = new TestSystem().ids.make('req')

function answer(path: string, accept: string | null, method = 'GET'): Response | null {
  const headers = accept === null ? {} : { accept }
  return frontPage(new Request(`http://127.0.0.1${path}`, { method, headers }), ID, 'management')
}

test('the page at `/` tells a browser what the address is, and which commands to use', async () => {
  const response = answer('/', BROWSER)!
  expect(response.status).toBe(200)
  expect(Object.fromEntries(response.headers)).toEqual({
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'content-type': 'text/html; charset=utf-8',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-service-request-id': ID,
  })
  expect(await response.text()).toContain('svc login --url')
})

test.each([
  ['/', null, 'GET'],
  ['/', '*/*', 'GET'],
  ['/', 'application/json', 'GET'],
  ['/', 'text/html;q=0.5, application/json', 'GET'],
  ['/', BROWSER, 'POST'],
  ['/index.html', BROWSER, 'GET'],
  ['/v1', BROWSER, 'GET'],
])('%s with Accept %s and %s has no page', (path, accept, method) => {
  expect(answer(path, accept, method)).toBeNull()
})
