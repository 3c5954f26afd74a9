/**
 * Paths of routes: `/` and segments, each a text or the name of a parameter behind a colon. The
 * more specific of two paths that match a request is taken; none are declared where neither is.
 */

const SEGMENT = /^(?:[A-Za-z0-9._~-]+|:[A-Za-z][A-Za-z0-9_]{0,63})$/
/** @limit HTTP mounts: characters of the path of a route */
export const ROUTE_PATH_MAX = 256
/** @limit HTTP mounts: segments of the path of a route */
export const ROUTE_SEGMENTS_MAX = 16

interface Routed {
  readonly path: string
  readonly methods: readonly string[]
}

/** Returns whether the text is a path of `http.ts`. A URL has no segment `.` or `..`. */
export function isRoutePath(path: string): boolean {
  if (!path.startsWith('/') || path.length > ROUTE_PATH_MAX) return false
  if (path === '/') return true
  const segments = segmentsOf(path)
  const names = segments.filter(isParameter)
  return (
    segments.length <= ROUTE_SEGMENTS_MAX &&
    segments.every((segment) => SEGMENT.test(segment) && !/^\.\.?$/.test(segment)) &&
    new Set(names).size === names.length
  )
}

/**
 * Returns the indexes of the first two routes that could both answer a request, neither of which is
 * more specific; null without any.
 */
export function findAmbiguity(routes: readonly Routed[]): readonly [number, number] | null {
  for (const [j, b] of routes.entries()) {
    const i = routes.findIndex((a, at) => at < j && isAmbiguous(a, b))
    if (i !== -1) return [i, j]
  }
  return null
}

function isAmbiguous(a: Routed, b: Routed): boolean {
  if (!a.methods.some((method) => b.methods.includes(method))) return false
  const [left, right] = [segmentsOf(a.path), segmentsOf(b.path)]
  if (left.length !== right.length) return false
  let [isLeftNarrower, isRightNarrower] = [false, false]
  for (const [i, segment] of left.entries()) {
    const other = right[i]!
    if (isParameter(segment) === isParameter(other)) {
      if (!isParameter(segment) && segment !== other) return false
    } else if (isParameter(other)) isLeftNarrower = true
    else isRightNarrower = true
  }
  return isLeftNarrower === isRightNarrower
}

export interface RouteMatch<T> {
  /** The most specific route of the path that has the method; null if there is none. */
  readonly route: T | null
  /** Methods of all routes of the path, sorted. */
  readonly methods: readonly string[]
}

/**
 * Returns the route of a request; null if no route has the path. `path` is that of the URL below
 * the mount, still encoded.
 */
export function matchRoute<T extends Routed>(
  routes: Iterable<T>,
  method: string,
  path: string,
): RouteMatch<T> | null {
  const segments = decodedSegments(path)
  if (segments === null) return null
  const methods = new Set<string>()
  let [best, fewest] = [null as T | null, Number.POSITIVE_INFINITY]
  for (const route of routes) {
    const declared = segmentsOf(route.path)
    if (!fits(declared, segments)) continue
    for (const each of route.methods) methods.add(each)
    // Of two that match, the more specific one has fewer parameters.
    const parameters = declared.filter(isParameter).length
    if (!route.methods.includes(method) || parameters >= fewest) continue
    best = route
    fewest = parameters
  }
  return methods.size === 0 ? null : { route: best, methods: [...methods].sort() }
}

/** Returns the names of the parameters of the path of a route. */
export function parameterNames(path: string): readonly string[] {
  return segmentsOf(path)
    .filter(isParameter)
    .map((segment) => segment.slice(1))
}

/** Returns the decoded parameters of a path that the route has. */
export function pathParameters(route: string, path: string): ReadonlyMap<string, string> {
  const segments = segmentsOf(path)
  const declared = [...segmentsOf(route).entries()].filter(([, each]) => isParameter(each))
  return new Map(declared.map(([i, each]) => [each.slice(1), decodeURIComponent(segments[i]!)]))
}

function fits(declared: readonly string[], segments: readonly string[]): boolean {
  if (declared.length !== segments.length) return false
  return declared.every((each, i) => {
    return isParameter(each) ? segments[i] !== '' : each === segments[i]
  })
}

/** Returns null for an encoding that is not one of UTF-8. */
function decodedSegments(path: string): readonly string[] | null {
  try {
    return segmentsOf(path).map(decodeURIComponent)
  } catch {
    return null
  }
}

function segmentsOf(path: string): readonly string[] {
  return path === '/' || path === '' ? [] : path.slice(1).split('/')
}

function isParameter(segment: string): boolean {
  return segment.startsWith(':')
}
