/**
 * The file of a root by which commands find the `svc dev` that serves it. The owner of the root's
 * lock writes it, for its user alone, and removes it at the end.
 */
import { Secret } from '../../value/secret.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { integer, text } from '../fields.ts'
import { parse } from '../reading/read.ts'
import { schema } from '../schema.ts'

export interface LocalServer {
  readonly pid: number
  /** Origin of the application API on this machine. */
  readonly url: string
  readonly applicationKey: Secret
  /** Calls the Functions that only confidential clients may call, as long as the process runs. */
  readonly confidentialKey: Secret
  /** The target that follows each save. */
  readonly target: string
  /** Absolute path of the Workspace that is served. */
  readonly workspaceDirectory: string
  /** Origin of the management API. */
  readonly managementUrl: string
  /** Opens the management API as long as the process runs. */
  readonly accessToken: Secret
}

export const LOCAL_SERVER_BYTES_MAX = 16_384

const Origin = text(/^http:\/\/127\.0\.0\.1:[0-9]{1,5}$/, 'an address of this machine')

const LocalServerFile = schema({
  version: '3',
  pid: integer(1, 2 ** 31 - 1),
  url: Origin,
  applicationKey: text(/^rk_pub_v1_[A-Za-z0-9_-]{43}$/, 'a public key'),
  confidentialKey: text(/^rk_sec_v1_[A-Za-z0-9_-]{43}$/, 'a confidential key'),
  target: 'string',
  workspaceDirectory: 'string',
  managementUrl: Origin,
  accessToken: text(/^rk_at_v1_[A-Za-z0-9_-]{43}$/, 'an access token'),
})

export function formatLocalServer(server: LocalServer): string {
  const { applicationKey, confidentialKey, accessToken, ...plain } = server
  const secrets = {
    applicationKey: applicationKey.reveal(),
    confidentialKey: confidentialKey.reveal(),
    accessToken: accessToken.reveal(),
  }
  return `${JSON.stringify({ version: 3, ...plain, ...secrets })}\n`
}

/** Throws ValidationError. */
export function parseLocalServer(bytes: Uint8Array): LocalServer {
  const { version: _, ...file } = parse(LocalServerFile, parseStrictJson(bytes))
  const { applicationKey, confidentialKey, accessToken, ...plain } = file
  return {
    ...plain,
    applicationKey: new Secret(applicationKey),
    confidentialKey: new Secret(confidentialKey),
    accessToken: new Secret(accessToken),
  }
}
