/** An application listener with stored files, for transfers over real connections. */
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { SignedDownloadRequest, UploadGrant } from '../../src/engine/files/function-storage.ts'
import { APPLICATION_CODES } from '../../src/http/errors.ts'
import { functionStorage } from '../../src/product/files/function-storage.ts'
import { issueUpload } from '../../src/product/files/uploads.ts'
import { type OpenListener, openListener } from '../../src/server/listeners.ts'
import { realSystem } from '../../src/system/system.ts'
import { type MemoryLog, memoryLog } from '../../src/telemetry/log.ts'
import { type GatewayInput, openTestGateway, type TestGateway } from '../gateways.ts'

export interface FileServer {
  readonly gateway: TestGateway
  readonly log: MemoryLog
  readonly origin: string
  /** Names of files that are being written. */
  staged(): readonly string[]
  grantUpload(request?: Partial<UploadTerms>): Promise<UploadGrant>
  grantDownload(fileId: string, fileName?: string | null): { path: string; token: string }
  /** Returns the path of a signed URL. */
  signDownload(fileId: string, terms?: Partial<SignedTerms>): string
  put(grant: Granted, body: BodyInit | null, headers?: Record<string, string>): Promise<Response>
  get(grant: Granted, headers?: Record<string, string>, method?: string): Promise<Response>
  /** Uploads the bytes and returns the ID of the file. */
  upload(bytes: string | Uint8Array<ArrayBuffer>, contentType?: string): Promise<string>
  socket(): Socket
  close(): Promise<void>
}

interface UploadTerms {
  readonly bucket: string
  readonly key: string | null
  readonly contentType: string
  readonly maximumBytes: number
  readonly expiresInSeconds: number
}

type SignedTerms = Omit<SignedDownloadRequest, 'fileId'>

type Granted = Pick<UploadGrant, 'path' | 'token'>

export async function openFileServer(input: Partial<GatewayInput> = {}): Promise<FileServer> {
  const log = memoryLog()
  const code = { functions: [], tables: [], handlers: {} }
  const gateway = await openTestGateway({ ...code, log: log.log, ...input })
  const listener: OpenListener = openListener({
    surface: 'application',
    listen: { host: '127.0.0.1', port: 0, loopback: true },
    app: gateway.application,
    codes: APPLICATION_CODES,
    system: realSystem(),
    log: log.log,
    tlsTerminated: true,
  })
  const origin = `http://${listener.address}`
  const { files } = gateway
  const grantUpload: FileServer['grantUpload'] = (request = {}) =>
    issueUpload(files, {
      bucket: 'default',
      key: null,
      contentType: 'text/plain',
      maximumBytes: 1_000_000,
      expiresInSeconds: 60,
      releaseId: gateway.releaseId,
      ...request,
    })
  const put: FileServer['put'] = ({ path, token }, body, headers = {}) =>
    fetch(origin + path, {
      method: 'PUT',
      body,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain', ...headers },
    })
  return {
    gateway,
    log,
    origin,
    staged: () => readdirSync(`${gateway.filesDirectory}/temporary`),
    grantUpload,
    grantDownload: (fileId, fileName = null) => {
      const nowMicros = realSystem().nowMicros()
      const request = { fileId, nowMicros, expiresInSeconds: 60, fileName }
      return functionStorage(() => files).issueDownload(request)
    },
    signDownload: (fileId, terms = {}) => {
      const nowMicros = realSystem().nowMicros()
      const usual = { nowMicros, expiresInSeconds: 60, fileName: null, inline: false }
      return functionStorage(() => files).signDownload({ fileId, ...usual, ...terms }).path
    },
    put,
    get: ({ path, token }, headers = {}, method = 'GET') =>
      fetch(origin + path, { method, headers: { authorization: `Bearer ${token}`, ...headers } }),
    upload: async (bytes, contentType = 'text/plain') => {
      const grant = await grantUpload({ contentType, maximumBytes: bytes.length })
      const reply = await put(grant, bytes, { 'content-type': contentType })
      const { file } = (await reply.json()) as { file: { fileId: string } }
      return file.fileId
    },
    socket: () => {
      const [host, port] = listener.address.split(':')
      return connect({ host: host!, port: Number(port) })
    },
    async close() {
      listener.cut()
      await gateway.close()
    },
  }
}
