/** The router of `http.ts` against that of hono, where the more specific routes come first. */
import { Hono } from 'hono'
import { expect } from 'vitest'
import { fuzz, type Random } from '../../../../testing/fuzzing/fuzz.ts'
import { findAmbiguity, isRoutePath, matchRoute } from '../../../value/http/paths.ts'

const METHODS = ['GET', 'POST', 'PUT']

interface Route {
  readonly path: string
  readonly methods: readonly string[]
}

const list = <T>(random: Random, most: number, item: (i: number) => T): T[] =>
  Array.from({ length: random.below(most + 1) }, (_, i) => item(i))

function randomRoutes(random: Random): Route[] {
  const routes: Route[] = []
  for (let i = 0; i < 8; i++) {
    const segments = list(random, 3, (at) => random.pick(['a', 'b', `:p${at}`]))
    const methods = METHODS.filter(() => random.chance(2))
    const route = { path: `/${segments.join('/')}`, methods }
    expect(isRoutePath(route.path)).toBe(true)
    if (methods.length > 0 && findAmbiguity([...routes, route]) === null) routes.push(route)
  }
  return routes
}

const parametersOf = ({ path }: Route): number => path.split(':').length

fuzz('a request reaches the route that another router finds', async (random) => {
  const routes = randomRoutes(random)
  const hono = new Hono({ strict: true })
  for (const route of routes.toSorted((a, b) => parametersOf(a) - parametersOf(b))) {
    for (const method of route.methods) {
      hono.on(method, route.path, (context) => context.text(String(routes.indexOf(route))))
    }
  }
  const method = random.pick(METHODS)
  const path = `/${list(random, 4, () => random.pick(['a', 'b', 'c', ''])).join('/')}`
  const answer = await hono.fetch(new Request(`http://localhost${path}`, { method }))
  const expected = answer.status === 404 ? null : routes[Number(await answer.text())]!
  const found = matchRoute(routes, method, path)
  expect(found?.route ?? null, JSON.stringify({ routes, method, path })).toBe(expected)
})
