/** Routes of `http.ts` in manifests, and what holds between them and the Functions. */
import { canonicalJson } from '../../value/canonical-json.ts'
import { CONFIGURATION_NAME } from '../../value/configuration.ts'
import { findAmbiguity, isRoutePath, parameterNames } from '../../value/http/paths.ts'
import {
  BODY_SCHEMES,
  ENDPOINT_BYTES_MAX,
  ENDPOINT_ORIGINS_MAX,
  EVERY_ORIGIN,
  HEADER_NAME,
  HMAC_ALGORITHMS,
  HMAC_ENCODINGS,
  HOOK_ARGUMENTS,
  HOOK_BYTES_MAX,
  HOOK_HEADERS_MAX,
  HTTP_METHODS,
  type HttpRouteManifest,
  isOrigin,
  ROUTE_NAME,
  SECRET_HEADERS,
  SIGNED_TIME_SCHEMES,
  secretOf,
  TOLERANCE_SECONDS_MAX,
} from '../../value/http/routes.ts'
import { admit } from '../../value/identities.ts'
import { FUNCTION_NAME, type FunctionManifest } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { integer, text, textUpTo } from '../fields.ts'
import { rule } from '../rules.ts'
import { declaredSchema, type Infer, type Schema, schema } from '../schema.ts'

/** Longest prefix of a digest. */
const PREFIX_CHARACTERS_MAX = 64
const JWT_TEXT_MAX = 1_024

function ascending<T extends string>(entry: Schema<T>, max: number): Schema<T[]> {
  const fits = (items: readonly string[]): boolean =>
    items.length <= max && items.every((item, i) => i === 0 || items[i - 1]! < item)
  return declaredSchema([[entry, '[]'], ':', rule('in order, each once', fits)])
}

const SecretField = text(CONFIGURATION_NAME, 'the name of a secret')
const ToleranceField = integer(1, TOLERANCE_SECONDS_MAX)
const HeaderField = text(HEADER_NAME, 'the name of a header in lower case')

const SignatureField = schema([
  [
    [
      {
        scheme: ['===', ...SIGNED_TIME_SCHEMES],
        secret: SecretField,
        toleranceSeconds: ToleranceField,
      },
      '|',
      { scheme: ['===', ...BODY_SCHEMES], secret: SecretField },
    ],
    '|',
    {
      scheme: "'hmac'",
      secret: SecretField,
      header: HeaderField,
      algorithm: ['===', ...HMAC_ALGORITHMS],
      encoding: ['===', ...HMAC_ENCODINGS],
      prefix: textUpTo(PREFIX_CHARACTERS_MAX),
      'timestampHeader?': HeaderField,
      'toleranceSeconds?': ToleranceField,
    },
  ],
  '|',
  { scheme: "'jwt'", issuer: textUpTo(JWT_TEXT_MAX), 'subject?': textUpTo(JWT_TEXT_MAX) },
])

const NameField = text(ROUTE_NAME, 'the name of a route')
const PathField = schema(['string', ':', rule('a path such as /stripe', isRoutePath)])
const MethodsField = schema([
  ascending(schema(['===', ...HTTP_METHODS]), HTTP_METHODS.length),
  ':',
  rule('at least one method', (methods: readonly string[]) => methods.length > 0),
])
const FunctionField = text(FUNCTION_NAME, 'the name of a Function')

const HookField = schema({
  kind: "'hook'",
  name: NameField,
  path: PathField,
  methods: MethodsField,
  maximumBytes: integer(1, HOOK_BYTES_MAX),
  headers: [
    // The server adds those of the scheme.
    ascending(HeaderField, HOOK_HEADERS_MAX + 8),
    ':',
    rule('no header with a credential', (names: readonly string[]) => {
      return !names.some((name) => SECRET_HEADERS.includes(name))
    }),
  ],
  verify: [SignatureField, '|', 'null'],
  hasOnce: 'boolean',
  'reply?': "'result'",
  function: FunctionField,
})

const isOriginList = (origins: readonly string[]): boolean =>
  origins.every(isOrigin) || (origins.length === 1 && origins[0] === EVERY_ORIGIN)

const EndpointField = schema({
  kind: "'endpoint'",
  name: NameField,
  path: PathField,
  methods: MethodsField,
  maximumBytes: integer(1, ENDPOINT_BYTES_MAX),
  origins: [
    ascending(schema('string'), ENDPOINT_ORIGINS_MAX),
    ':',
    rule('exact origins, or * alone', isOriginList),
  ],
  function: FunctionField,
})

export const HttpRouteField = schema([HookField, '|', EndpointField])

/** Begins the rule that an Action breaks which names a secret of a hook. */
export const NO_HOOK_SECRET = 'a secret that no hook verifies with'

/** Checks the routes against each other and their Functions. Throws ValidationError. */
export function checkHttpRoutes(
  routes: readonly Infer<typeof HttpRouteField>[],
  functions: ReadonlyMap<string, FunctionManifest>,
): readonly HttpRouteManifest[] {
  for (const [i, route] of routes.entries()) {
    const path = `$.http[${i}]`
    const callee = functions.get(route.function)
    if (route.kind === 'hook') checkHandler(callee, `${path}.function`)
    else checkEndpoint(route, callee, path)
  }
  checkSecrets(routes as readonly HttpRouteManifest[], functions)
  const ambiguous = findAmbiguity(routes)
  if (ambiguous === null) return routes as readonly HttpRouteManifest[]
  const [first, second] = ambiguous
  const { name, path } = routes[first]!
  const fits = `a path that no request shares with "${name}" (${path})`
  throw new ValidationError(fits, `$.http[${second}].path`)
}

/** Checks that the server alone reads the secrets of hooks. */
function checkSecrets(
  routes: readonly HttpRouteManifest[],
  functions: ReadonlyMap<string, FunctionManifest>,
): void {
  for (const [i, { uses }] of [...functions.values()].entries()) {
    for (const [at, secret] of (uses?.secrets ?? []).entries()) {
      const hook = routes.find(
        (route) => route.kind === 'hook' && secretOf(route.verify) === secret,
      )
      if (hook === undefined) continue
      const rule = `${NO_HOOK_SECRET}, as "${hook.name}" does`
      throw new ValidationError(rule, `$.functions[${i}].uses.secrets[${at}]`)
    }
  }
}

function checkEndpoint(
  { path: declared, methods }: Infer<typeof EndpointField>,
  callee: FunctionManifest | undefined,
  path: string,
): void {
  if (callee === undefined) {
    throw new ValidationError('a Function of this Workspace', `${path}.function`)
  }
  if (callee.kind !== 'query' && (methods as readonly string[]).includes('GET')) {
    const fits = `other methods than GET, by which nothing changes: the handler is a ${callee.kind}`
    throw new ValidationError(fits, `${path}.methods`)
  }
  const unknown = parameterNames(declared).find((name) => !Object.hasOwn(callee.arguments, name))
  if (unknown === undefined) return
  const fits = `parameters that are arguments of ${callee.name}, unlike :${unknown}`
  throw new ValidationError(fits, `${path}.path`)
}

function checkHandler(callee: FunctionManifest | undefined, path: string): void {
  if (callee === undefined || callee.kind === 'query') {
    throw new ValidationError('a Mutation or an Action of this Workspace', path)
  }
  if (callee.visibility !== 'internal') {
    const fits = 'an internal Function, which applications cannot call with invented deliveries'
    throw new ValidationError(fits, path)
  }
  if (admit(callee.auth, null) !== null) {
    throw new ValidationError('a Function that needs no identity, as a delivery has none', path)
  }
  const declared = canonicalJson(callee.arguments as unknown as Json)
  if (declared === canonicalJson(HOOK_ARGUMENTS as unknown as Json)) return
  throw new ValidationError('a Function with arguments { delivery: v.httpDelivery() }', path)
}
