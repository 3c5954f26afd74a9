/** Endpoints in manifests that no builder wrote. */
import { expect, test } from 'vitest'
import { functionManifest } from '../../../testing/products.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseDescription } from './manifest.ts'

const ENDPOINT = {
  kind: 'endpoint',
  name: 'read',
  path: '/orders/:id',
  methods: ['GET'],
  maximumBytes: 1_000,
  origins: ['http://[::1]:3000', 'https://a.example'],
  function: 'orders.read',
}
const FUNCTIONS = [
  functionManifest('orders.read', { arguments: { id: { type: 'string' } } }),
  functionManifest('orders.write', { kind: 'mutation' }),
]

/** Returns the path that breaks a rule; null for a description that is accepted. */
function brokenPath(...routes: object[]): string | null {
  try {
    parseDescription({ functions: FUNCTIONS, tables: [], http: routes } as never)
    return null
  } catch (error) {
    if (error instanceof ValidationError) return error.path
    throw error
  }
}

test('an endpoint of any origin or of exact ones is accepted', () => {
  expect(brokenPath(ENDPOINT)).toBeNull()
  expect(brokenPath({ ...ENDPOINT, origins: ['*'] })).toBeNull()
  expect(brokenPath({ ...ENDPOINT, origins: [] })).toBeNull()
})

test.each<readonly [string, object]>([
  ['.origins', { origins: ['*', 'https://a.example'] }],
  ['.origins', { origins: ['https://b.example', 'https://a.example'] }],
  ['.origins', { origins: ['https://a.example', 'https://a.example'] }],
  ['.origins', { origins: ['null'] }],
  ['.origins', { origins: ['https://a.example\r\nset-cookie: a=b'] }],
  ['.origins', { origins: Array.from({ length: 33 }, (_, i) => `http://a:${1_000 + i}`) }],
  ['.maximumBytes', { maximumBytes: 2_097_153 }],
  ['.methods', { methods: ['HEAD'] }],
  ['.methods', { methods: [] }],
  ['.path', { path: '/orders/:order' }],
  ['.path', { path: '/orders/:__proto__' }],
  ['.function', { function: 'orders.absent' }],
  ['.methods', { path: '/orders', function: 'orders.write' }],
  ['', { verify: null }],
  ['', { auth: 'none' }],
])('an endpoint with a wrong %s is rejected: %j', (part, more) => {
  expect(brokenPath({ ...ENDPOINT, ...more })).toMatch(
    new RegExp(`^\\$\\.http\\[0\\]${RegExp.escape(part)}`),
  )
})
