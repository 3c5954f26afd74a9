/**
 * An S3-compatible store, in memory unless a test gives it other places: single and multipart
 * uploads, ranges, listing and deletion. It fails in the ways that tests choose. Signatures are not
 * verified.
 */

/**
 * The failure of all requests: `short` and `long` send a wrong length, `stalled` sends the first
 * half of an object and then nothing.
 */
export type S3Failure = 'error' | 'denied' | 'short' | 'long' | 'silent' | 'stalled'

/** Maximum number of objects on a page of a list, unless a test chooses another one. */
const PAGE = 2

/** The place of the objects. */
export type S3Contents = Pick<Map<string, Uint8Array>, 'delete' | 'get' | 'keys' | 'set'>

export interface S3ServerOptions<Contents extends S3Contents> {
  readonly objects?: Contents
  /** Any free port by default. */
  readonly port?: number
  readonly pageLength?: number
}

export class S3Server<Contents extends S3Contents = Map<string, Uint8Array>> {
  readonly objects: Contents
  /** Parts of uploads that were neither completed nor aborted. */
  readonly openUploads = new Map<string, Map<number, Uint8Array>>()
  failure: S3Failure | null = null
  /** Answers of the failure `stalled` whose client still waits for the rest. */
  stalled = 0
  readonly #server: Bun.Server<undefined>
  readonly #pageLength: number
  #uploads = 0

  constructor({ objects, port = 0, pageLength = PAGE }: S3ServerOptions<Contents> = {}) {
    this.objects = objects ?? (new Map<string, Uint8Array>() as S3Contents as Contents)
    this.#pageLength = pageLength
    this.#server = Bun.serve({
      port,
      hostname: '127.0.0.1',
      idleTimeout: 255,
      fetch: (request) => this.#answer(request),
    })
  }

  get endpoint(): string {
    return this.#server.url.origin
  }

  async stop(): Promise<void> {
    await this.#server.stop(true)
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const key = decodeURIComponent(pathname.split('/').slice(2).join('/'))
    const body = new Uint8Array(await request.arrayBuffer())
    if (this.failure === 'silent') return new Promise<Response>(() => undefined)
    if (this.failure === 'error') return fault(500, 'InternalError')
    if (this.failure === 'denied') return fault(403, 'AccessDenied')
    const uploadId = searchParams.get('uploadId')
    switch (request.method) {
      case 'POST':
        return uploadId === null ? this.#begin() : this.#complete(key, uploadId)
      case 'PUT':
        return this.#put(key, body, searchParams)
      case 'DELETE':
        if (uploadId === null) this.objects.delete(key)
        else this.openUploads.delete(uploadId)
        return new Response(null, { status: 204 })
      default:
        return searchParams.has('list-type') ? this.#list(searchParams) : this.#get(request, key)
    }
  }

  #begin(): Response {
    const id = `upload-${++this.#uploads}`
    this.openUploads.set(id, new Map())
    return xml('InitiateMultipartUploadResult', `<UploadId>${id}</UploadId>`)
  }

  #complete(key: string, id: string): Response {
    const parts = [...this.openUploads.get(id)!].sort(([a], [b]) => a - b)
    this.objects.set(key, new Uint8Array(Buffer.concat(parts.map(([, bytes]) => bytes))))
    this.openUploads.delete(id)
    return xml('CompleteMultipartUploadResult', '<ETag>"e"</ETag>')
  }

  #put(key: string, body: Uint8Array, query: URLSearchParams): Response {
    const id = query.get('uploadId')
    if (id === null) this.objects.set(key, body)
    else this.openUploads.get(id)!.set(Number(query.get('partNumber')), body)
    return new Response(null, { headers: { etag: '"e"' } })
  }

  #list(query: URLSearchParams): Response {
    const prefix = query.get('prefix') ?? ''
    const after = query.get('continuation-token') ?? ''
    const delimiter = query.get('delimiter')
    const keys = [...new Set([...this.objects.keys()].map((key) => group(key, prefix, delimiter)))]
      .sort()
      .filter((key) => key.startsWith(prefix) && key > after)
    const page = keys.slice(0, this.#pageLength)
    const contents = page.map((key) => {
      const object = this.objects.get(key)
      return object === undefined
        ? `<CommonPrefixes><Prefix>${key}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${key}</Key><Size>${object.length}</Size></Contents>`
    })
    const more = keys.length > page.length
    const next = more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : ''
    const truncated = `<IsTruncated>${more}</IsTruncated>`
    return xml('ListBucketResult', `<Name>b</Name>${truncated}${next}${contents.join('')}`)
  }

  #get(request: Request, key: string): Response {
    const bytes = this.objects.get(key)
    if (bytes === undefined) return fault(404, 'NoSuchKey')
    if (request.method === 'HEAD') {
      return new Response(null, { headers: { 'content-length': String(bytes.length) } })
    }
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get('range') ?? '') ?? []
    const end = last ? Number(last) + 1 : bytes.length
    const part = first === undefined ? bytes : bytes.subarray(Number(first), end)
    const lies = { short: part.subarray(1), long: Buffer.concat([part, part]) }
    const { failure } = this
    if (failure === 'stalled') return this.#stall(part)
    const sent = failure === 'short' || failure === 'long' ? lies[failure] : part
    return new Response(sent as BodyInit, { status: first === undefined ? 200 : 206 })
  }

  #stall(bytes: Uint8Array): Response {
    this.stalled += 1
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(bytes.subarray(0, bytes.length / 2)),
      cancel: () => {
        this.stalled -= 1
      },
    })
    return new Response(body)
  }
}

/** Returns the key, or its beginning up to the first delimiter after the prefix. */
function group(key: string, prefix: string, delimiter: string | null): string {
  const at = delimiter === null ? -1 : key.indexOf(delimiter, prefix.length)
  return at < 0 ? key : key.slice(0, at + 1)
}

function xml(root: string, content: string): Response {
  return new Response(`<?xml version="1.0"?><${root}>${content}</${root}>`, {
    headers: { 'content-type': 'application/xml' },
  })
}

function fault(status: number, code: string): Response {
  const body = `<Error><Code>${code}</Code><Message>${code}</Message></Error>`
  return new Response(body, { status, headers: { 'content-type': 'application/xml' } })
}
