/**
 * `svc openapi`: writes the OpenAPI document of the Functions that an Application Key may call, so
 * that a generator of another language makes a client.
 */
import { isFault } from '../../../errors/fault.ts'
import { writeFileAtomic } from '../../../system/files.ts'
import type { Json } from '../../../value/strict-json.ts'
import { OpenApiDocument } from '../../../wire/openapi.ts'
import { type CommandSpec, command, option } from '../../contexts.ts'
import { explained } from '../../explanations.ts'
import { withPath } from '../../files.ts'
import { send } from '../../requests/requests.ts'
import { openRemote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { printableJson } from '../../visible-text.ts'
import { REMOTE } from '../operations.ts'
import { targetOf } from '../targets.ts'
import { callerFrom, FUNCTION_OPTIONS } from './function-calls.ts'

const DOCUMENT_BYTES_MAX = 64 * 1024 * 1024
const FILE_MODE = 0o644
/** `svc dev` has a key for each kind of Client; this kind may call the most. */
const CONFIDENTIAL = { clients: ['confidential'] } as const

const { url, target, 'key-env': keyVariable } = FUNCTION_OPTIONS

export const openapiCommand: CommandSpec = command({
  name: 'openapi',
  summary: 'Write an OpenAPI document of the Functions that a key may call',
  details: [
    'The document is OpenAPI 3.1. It has the arguments and results of each Function as ordinary',
    'JSON, so that generators of many languages make a client from it.',
  ],
  options: {
    ...REMOTE,
    url,
    'key-env': keyVariable,
    target,
    out: option('FILE', 'Where to write the document; stdout by default'),
  },
  examples: [
    'svc openapi --dev --out functions.json',
    'svc openapi --url https://app.example.com --key-env APP_KEY --target channel:production',
  ],
  async run(context, options) {
    const { environment, output } = context
    const remote = await openRemote(context, options)
    const { keyFor, origin } = callerFrom(context, openapiCommand, options, remote)
    const target = targetOf(remote, options.target, openapiCommand)
    const request = send(context, {
      method: 'GET',
      origin,
      path: `/v1/functions/openapi.json?target=${encodeURIComponent(target)}`,
      headers: { 'x-service-key': keyFor(CONFIDENTIAL).reveal() },
      reply: OpenApiDocument,
      replay: 'safe',
      responseBytesMax: DOCUMENT_BYTES_MAX,
    }).catch((error) => {
      if (!isFault(error, 'ROUTE_NOT_FOUND')) throw error
      throw explained(error, { detail: 'The server is older than this client.' })
    })
    const document = (await output.progress('reading the document', request)) as unknown as Json
    if (options.out === undefined) return output.result(document, [printableJson(document)])
    const path = resolvePath(environment, options.out)
    const text = `${JSON.stringify(document, null, 2)}\n`
    withPath(path, () => writeFileAtomic(path, Buffer.from(text), { mode: FILE_MODE }))
    const { paths = {} } = document as { readonly paths?: object }
    const functions = Object.keys(paths).length
    return output.result({ version: 1, file: path, functions }, [
      `Wrote ${path}: ${functions} Functions.`,
    ])
  },
})
