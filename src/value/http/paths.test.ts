/** Paths of routes: which are valid, which are ambiguous, and which route a request reaches. */
import { expect, test } from 'vitest'
import { findAmbiguity, isRoutePath, matchRoute, parameterNames, pathParameters } from './paths.ts'

const post = (path: string) => ({ path, methods: ['POST'] })
const reached = (paths: readonly string[], path: string) =>
  matchRoute(paths.map(post), 'POST', path)?.route?.path

test.each(['/', '/stripe', '/a/b.c/~d-_', '/:id', '/shops/:shop/orders/:order', '/...'])(
  'a path of texts and parameters is valid: %s',
  (path) => expect(isRoutePath(path)).toBe(true),
)

test.each([
  '',
  'stripe',
  '/stripe/',
  '//',
  '/a//b',
  '/a b',
  '/a%20b',
  '/a?b',
  '/.',
  '/a/../b',
  '/:',
  '/:1',
  '/a:b',
  '/*',
  '/:id/:id',
  `/${'a'.repeat(256)}`,
  '/a'.repeat(17),
])('a path of another form is invalid: %s', (path) => {
  expect(isRoutePath(path)).toBe(false)
})

test('two paths are ambiguous where they share a request and neither is narrower', () => {
  const isAmbiguous = (a: string, b: string) => findAmbiguity([post(a), post(b)]) !== null
  expect(isAmbiguous('/a', '/a')).toBe(true)
  expect(isAmbiguous('/:x', '/:y')).toBe(true)
  expect(isAmbiguous('/a/:x', '/:y/b')).toBe(true)
  expect(isAmbiguous('/a', '/:x')).toBe(false)
  expect(isAmbiguous('/a/:x', '/:x/:y')).toBe(false)
  expect(isAmbiguous('/a/:x', '/b/:x')).toBe(false)
  expect(isAmbiguous('/a', '/a/b')).toBe(false)
  expect(isAmbiguous('/', '/')).toBe(true)
  const other = { path: '/a', methods: ['PUT'] }
  expect(findAmbiguity([post('/a'), other])).toBeNull()
  expect(findAmbiguity([post('/b'), post('/a'), other, other])).toEqual([2, 3])
})

test('a request reaches the most specific route of its path and method', () => {
  const paths = ['/:a/:b', '/shops/:b', '/shops/new', '/', '/one']
  expect(reached(paths, '/shops/new')).toBe('/shops/new')
  expect(reached(paths, '/shops/old')).toBe('/shops/:b')
  expect(reached(paths, '/other/new')).toBe('/:a/:b')
  expect(reached(paths, '/')).toBe('/')
  expect(reached(paths, '')).toBe('/')
  expect(reached(paths, '/%6fne')).toBe('/one')
  expect(reached(paths, '/shops/a%2Fb')).toBe('/shops/:b')
})

test.each(['/One', '/one/', '//one', '/shops//', '/shops/', '/a/b/c', '/%zz', '/%ff'])(
  'a path that no route has reaches none: %s',
  (path) => expect(matchRoute(['/one', '/:a/:b'].map(post), 'POST', path)).toBeNull(),
)

test('a path without a route of the method tells the methods that it has', () => {
  const routes = [post('/a'), { path: '/:x', methods: ['PUT', 'GET'] }]
  expect(matchRoute(routes, 'PATCH', '/a')).toEqual({
    route: null,
    methods: ['GET', 'POST', 'PUT'],
  })
  expect(matchRoute(routes, 'GET', '/a')?.route?.path).toBe('/:x')
})

test('the parameters of a path are decoded once, and a text is none', () => {
  expect(parameterNames('/shops/:shop/orders/:order')).toEqual(['shop', 'order'])
  expect([...pathParameters('/shops/:shop/:order', '/shops/a%2Fb/%2525')]).toEqual([
    ['shop', 'a/b'],
    ['order', '%25'],
  ])
  expect([...pathParameters('/', '')]).toEqual([])
})
