/**
 * OpenAPI documents of the Functions that a key may call, in their plain form. A document depends
 * on the Release, the target and the rights of the key, and is kept for its next readers.
 */
import { Fault } from '../../../errors/fault.ts'
import { type CompressedForms, KeptForms } from '../../../system/compression.ts'
import { sha256 } from '../../../system/digests.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../../system/memory/memory-plan.ts'
import type { DeclaredErrorKind, FunctionManifest } from '../../../value/manifest.ts'
import { TAGS } from '../../../value/plain-json/undecided.ts'
import { TARGET } from '../../../value/targets.ts'
import { FUNCTIONS_PATH } from './paths.ts'
import { type JsonSchema, objectSchema, plainSchema } from './schemas.ts'

/**
 * Most characters of a document. A manifest of 4 MiB makes about three times as many.
 * @limit Calls: characters of the OpenAPI document of the Functions of a Release
 */
export const DOCUMENT_CHARACTERS_MAX = 16 * 1024 * 1024

export interface FunctionsDocument {
  readonly text: string
  /** The SHA-256 of the text in lowercase hex. */
  readonly digest: string
  readonly forms: CompressedForms
}

interface Described {
  readonly releaseId: string
  readonly target: string
  /** Sorted by name. */
  readonly functions: readonly FunctionManifest[]
}

export class FunctionDocuments {
  /** The least recently used one comes first. */
  readonly #kept = new Map<string, FunctionsDocument>()
  readonly #charactersMax: number
  #characters = 0

  constructor({ describedCharacters }: Pick<MemoryPlan, 'describedCharacters'> = DEFAULT_PLAN) {
    this.#charactersMax = describedCharacters
  }

  /**
   * Returns the document of the Functions that the rights permit. `rights` names everything that
   * decides which these are. Throws LIMIT_EXCEEDED.
   */
  get(
    { releaseId, target }: Pick<Described, 'releaseId' | 'target'>,
    rights: string,
    functions: () => Described['functions'],
  ): FunctionsDocument {
    const key = `${releaseId}\n${target}\n${rights}`
    const known = this.#kept.get(key)
    if (known !== undefined) {
      this.#kept.delete(key)
      this.#kept.set(key, known)
      return known
    }
    const text = documentText({ releaseId, target, functions: functions() })
    const digest = sha256(text).toString('hex')
    const document = { text, digest, forms: new KeptForms() }
    this.#kept.set(key, document)
    this.#characters += text.length
    for (const [oldest, { text }] of this.#kept) {
      if (this.#characters <= this.#charactersMax) break
      this.#kept.delete(oldest)
      this.#characters -= text.length
    }
    return document
  }
}

const STATUS: Readonly<Record<DeclaredErrorKind, string>> = {
  invalid: '400',
  forbidden: '403',
  not_found: '404',
  conflict: '409',
}

const KINDS = { query: 'Query', mutation: 'Mutation', action: 'Action' } as const
const U64: JsonSchema = { type: 'string', pattern: '^(?:0|[1-9][0-9]{0,19})$' }
const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })

function closed(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  // Clients overlook fields of later versions.
  return { type: 'object', properties, required: Object.keys(properties) }
}

const METADATA: Readonly<Record<FunctionManifest['kind'], JsonSchema>> = {
  query: closed({ kind: { type: 'string', const: 'query' }, snapshotSequence: orNull(U64) }),
  mutation: closed({
    kind: { type: 'string', const: 'mutation' },
    operationId: { type: 'string' },
    commitSequence: orNull(U64),
    replayed: { type: 'boolean' },
    attempts: { type: 'integer', minimum: 1 },
  }),
  action: closed({ kind: { type: 'string', const: 'action' }, schedulesCreated: U64 }),
}

const ERROR = closed({
  version: { type: 'integer', const: 1 },
  status: { type: 'string', const: 'error' },
  requestId: { type: 'string' },
  error: closed({
    code: { type: 'string' },
    message: { type: 'string' },
    retryable: { type: 'boolean' },
  }),
})

const TAGGED = {
  description:
    'A value with its type, where the type of the Function does not decide it. `svc docs calls` ' +
    'has the forms.',
  type: 'object',
  properties: {
    type: { type: 'string', enum: TAGS },
    value: {},
  },
  required: ['type'],
  additionalProperties: false,
}

const TARGET_PARAMETER = 'X-Service-Target'

function parameters(target: string) {
  const header = (name: string, schema: JsonSchema, description: string) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema,
  })
  return {
    target: header(
      TARGET_PARAMETER,
      { type: 'string', pattern: TARGET.source, default: target },
      'The target. Without it, `environment:default`.',
    ),
    operationId: header(
      'Idempotency-Key',
      { type: 'string', pattern: '^opn_[0-7][0-9A-HJKMNP-TV-Z]{25}$' },
      'The operation ID. The effects happen once for each. A call without it gets one from the ' +
        'server, and is not safe to repeat.',
    ),
  }
}

const SECURITY_SCHEMES = {
  applicationKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Service-Key',
    description: 'An Application Key.',
  },
  functionalToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The identity that the application calls for.',
  },
} as const

function securityOf({ auth }: FunctionManifest): object[] {
  const key = { applicationKey: [] }
  const both = { applicationKey: [], functionalToken: [] }
  if (auth === 'none') return [key]
  return auth === 'optional' ? [key, both] : [both]
}

const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })
const json = (schema: JsonSchema) => ({ 'application/json': { schema } })

function operation(definition: FunctionManifest): object {
  const { name, kind } = definition
  const errors = Object.groupBy(
    Object.entries(definition.errors),
    ([, errorKind]) => STATUS[errorKind],
  )
  const declared = Object.entries(errors).map(([status, codes]) => {
    const description = codes!.map(([code]) => `\`APP_${code}\``).join(', ')
    return [status, { description, content: json(ref('schemas', 'Error')) }] as const
  })
  return {
    operationId: name,
    summary: `Calls the ${KINDS[kind]} ${name}.`,
    tags: [name.slice(0, name.lastIndexOf('.'))],
    security: securityOf(definition),
    parameters: [
      ref('parameters', 'target'),
      ...(kind === 'mutation' ? [ref('parameters', 'operationId')] : []),
    ],
    requestBody: { required: true, content: json(objectSchema(definition.arguments)) },
    responses: {
      200: {
        description: 'The result.',
        content: json(
          closed({
            version: { type: 'integer', const: 1 },
            status: { type: 'string', const: 'ok' },
            requestId: { type: 'string' },
            result: plainSchema(definition.returns),
            metadata: METADATA[kind],
          }),
        ),
      },
      ...Object.fromEntries(declared),
      default: { description: 'A failure.', content: json(ref('schemas', 'Error')) },
    },
  }
}

/** Throws LIMIT_EXCEEDED. */
function documentText({ releaseId, target, functions }: Described): string {
  const paths = functions.map((each) => [
    `${FUNCTIONS_PATH}${each.name}`,
    { post: operation(each) },
  ])
  const text = JSON.stringify({
    openapi: '3.1.1',
    info: {
      title: 'Functions',
      version: releaseId,
      description:
        'The Functions that one Application Key may call, with their arguments and results as ' +
        'ordinary JSON.',
    },
    servers: [{ url: '/' }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: SECURITY_SCHEMES,
      parameters: parameters(target),
      schemas: { Error: ERROR, TaggedValue: TAGGED },
    },
  })
  if (text.length <= DOCUMENT_CHARACTERS_MAX) return text
  const detail = `the document of ${functions.length} Functions has ${text.length} characters`
  throw new Fault('LIMIT_EXCEEDED', { detail })
}
