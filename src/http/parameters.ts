/** Paths of operations, as Hono takes them. */
import type { PathParameter } from '../wire/operations/parameters.ts'

/** Returns the path as Hono takes it. */
export function routePattern(path: string): string {
  return path.replace(/:objectKey$/, ':objectKey{[^]+}')
}

export function pathParameters(path: string): PathParameter[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as PathParameter)
}
