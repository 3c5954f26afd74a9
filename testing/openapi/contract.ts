/** Checks requests and responses against the OpenAPI document. */
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'vitest'
import { publishedDocument } from '../../src/http/openapi/published.ts'
import { SECRET_FORMAT } from '../../src/wire/fields.ts'

export interface Schema {
  readonly [keyword: string]: unknown
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: Schema
}

interface Media {
  readonly schema?: Schema
}

interface DocumentedResponse {
  readonly headers?: Readonly<
    Record<string, { readonly required?: boolean; readonly schema: Schema }>
  >
  readonly content?: Readonly<Record<string, Media>>
}

export interface DocumentedOperation {
  readonly name: string
  readonly description: string
  readonly method: string
  /** The path, with `{name}` for a parameter. */
  readonly path: string
  /** True if the path belongs to the application origin. */
  readonly elsewhere: boolean
  readonly parameters: readonly Parameter[]
  readonly body: { readonly mediaType: string; readonly schema: Schema | null } | null
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

export interface Checked {
  readonly status: number
  readonly body: unknown
  /** The code of the error envelope; null for any other response. */
  readonly code: string | null
}

export interface CheckedRequest {
  readonly method: string
  /** The path without its query. */
  readonly path: string
  /** False if the test observes how the body is read. */
  readonly readsBody?: boolean
}

let published: Contract | undefined

/** Returns the contract of the document that this version serves. */
export function publishedContract(): Contract {
  published ??= new Contract(publishedDocument())
  return published
}

/** Reads a body that nothing has decompressed, as it is where the origin is called directly. */
async function textOf(response: Response): Promise<string> {
  const coding = response.headers.get('content-encoding')
  if (coding === null) return response.text()
  const bytes = await response.bytes()
  return (coding === 'gzip' ? gunzipSync(bytes) : zstdDecompressSync(bytes)).toString()
}

type Node = Readonly<Record<string, unknown>>
const METHODS = ['get', 'post', 'put', 'delete', 'patch', 'options', 'head', 'trace']
/** Headers that every response may have. */
const TRANSPORT_HEADERS = ['content-type', 'content-length', 'content-range', 'date']
/** Headers of responses of the application origin to pages of a listed browser origin. */
const BROWSER_HEADERS = ['access-control-allow-origin', 'access-control-expose-headers', 'vary']

export class Contract {
  readonly operations: readonly DocumentedOperation[]
  readonly #document: Node
  readonly #ajv = new Ajv2020({ strict: false, validateSchema: false, allErrors: true })
  readonly #compiled = new Map<string, ValidateFunction>()
  readonly #forms: readonly (readonly [operation: DocumentedOperation, path: RegExp])[]

  constructor(document: object) {
    this.#document = document as Node
    this.#ajv.addFormat(SECRET_FORMAT, true)
    this.#ajv.addSchema(document, 'svc')
    const paths = Object.entries(this.#document.paths as Record<string, Node>)
    this.operations = paths.flatMap(([path, item]) =>
      METHODS.filter((method) => item[method] !== undefined).map((method) =>
        this.#operation(method, path, item),
      ),
    )
    this.#forms = this.operations.map((operation) => {
      const { path } = operation
      return [operation, new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`)]
    })
  }

  /** Returns the problem of `data`; null if the schema accepts it. */
  problem(schema: Schema, data: unknown): string | null {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"svc#/components/')
    const validate = this.#compiled.get(text) ?? this.#ajv.compile(JSON.parse(text))
    this.#compiled.set(text, validate)
    return validate(data) ? null : this.#ajv.errorsText(validate.errors)
  }

  /** Returns the schema that a reference names, or the schema itself. */
  resolve<T>(node: T): T {
    const reference = (node as { readonly $ref?: string }).$ref
    if (reference === undefined) return node
    const parts = reference.replace(/^#\//, '').split('/')
    return parts.reduce((at: unknown, part) => (at as Node)[part], this.#document) as T
  }

  /** Fails unless the document describes the status, headers and body of the response. */
  async check(operation: DocumentedOperation, response: Response): Promise<Checked> {
    const { status } = response
    const text = await textOf(response)
    const at = `${operation.name} ${status} ${text.slice(0, 600)}`
    const documented = this.#checkHead(operation, response, at)
    if (documented.content === undefined) {
      expect(text, at).toBe('')
      return { status, body: null, code: null }
    }
    const schema = this.#schemaOf(documented, response, at)
    if (schema === undefined) return { status, body: text, code: null }
    // A response to HEAD has no body, but the headers of the response to GET.
    if (operation.method === 'HEAD' && text === '') return { status, body: null, code: null }
    const body = JSON.parse(text)
    expect(this.problem(schema, body), at).toBeNull()
    return { status, body, code: body.error?.code ?? null }
  }

  /**
   * Checks a response to any documented operation, and leaves it to be read. Bodies are read ahead
   * where they have a schema.
   */
  async checkAny(
    { method, path, readsBody = true }: CheckedRequest,
    response: Response,
  ): Promise<void> {
    const operation = this.#operationAt(method, path)
    if (operation === undefined) return
    const at = `${operation.name} ${response.status}`
    const documented = this.#checkHead(operation, response, at)
    if (this.#schemaOf(documented, response, at) === undefined || !readsBody) return
    await this.check(operation, response.clone())
  }

  #operationAt(method: string, path: string): DocumentedOperation | undefined {
    return this.#forms.find(([each, form]) => each.method === method && form.test(path))?.[0]
  }

  #checkHead(operation: DocumentedOperation, response: Response, at: string): DocumentedResponse {
    const documented = this.resolve(operation.responses[String(response.status)])
    expect(documented, at).toBeDefined()
    const transported = operation.elsewhere ? BROWSER_HEADERS : []
    this.#checkHeaders(documented!, response.headers, [...TRANSPORT_HEADERS, ...transported], at)
    return documented!
  }

  /** Returns the schema of the body; undefined for one of bytes, and where there is none. */
  #schemaOf({ content }: DocumentedResponse, { headers }: Response, at: string) {
    if (content === undefined) return undefined
    const mediaType = headers.get('content-type')?.split(';')[0] ?? ''
    const media = content[mediaType] ?? content['*/*']
    expect(media, `${at}: ${mediaType}`).toBeDefined()
    return media!.schema
  }

  #checkHeaders(
    { headers = {} }: DocumentedResponse,
    answered: Headers,
    transported: readonly string[],
    at: string,
  ): void {
    for (const [name, reference] of Object.entries(headers)) {
      const { required, schema } = this.resolve(reference)
      const text = answered.get(name)
      if (text === null) {
        expect(required ?? false, `${at}: ${name}`).toBe(false)
        continue
      }
      const value = schema.type === 'integer' ? Number(text) : text
      expect(this.problem(schema, value), `${at}: ${name}: ${text}`).toBeNull()
    }
    const known = [...transported, ...Object.keys(headers).map((name) => name.toLowerCase())]
    expect(
      [...answered.keys()].filter((name) => !known.includes(name)),
      at,
    ).toEqual([])
  }

  #operation(method: string, path: string, item: Node): DocumentedOperation {
    const node = item[method] as Node
    const parameters = node.parameters as readonly Parameter[]
    const body = node.requestBody as { content: Record<string, Media> } | undefined
    const [content] = Object.entries(body?.content ?? {})
    return {
      name: node.operationId as string,
      description: node.description as string,
      method: method.toUpperCase(),
      path,
      elsewhere: item.servers !== undefined,
      parameters: parameters.map((each) => this.resolve(each)),
      body:
        content === undefined ? null : { mediaType: content[0], schema: content[1].schema ?? null },
      security: node.security as DocumentedOperation['security'],
      responses: node.responses as DocumentedOperation['responses'],
    }
  }
}
