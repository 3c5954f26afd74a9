import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { selfSigned } from '../../../testing/certificates.ts'
import { archiveName } from '../../../testing/client/signed-releases.ts'
import { NEW, OLD, UNTOUCHED, UpgradeSite } from '../../../testing/client/upgrade-site.ts'
import { createFetch } from '../network/fetch.ts'
import { download, readSmall, type Source } from './downloads.ts'

const servers: Server[] = []
let work: string
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-download-'))
})
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  rmSync(work, { recursive: true, force: true })
})

async function serve(listener: RequestListener, tls?: { cert: string; key: string }) {
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
}

function source(url: string, more: Partial<Source> = {}): Source {
  const signal = new AbortController().signal
  return { address: { kind: 'url', url }, fetch: createFetch(() => undefined), signal, ...more }
}

const undelivered = (detail: string) =>
  expect.objectContaining({
    code: 'CLIENT_UPGRADE_UNDELIVERED',
    detail: expect.stringContaining(detail),
  })

/** Serves the release of a site; `alter` may answer a request itself, and then returns true. */
function serveRelease(
  site: UpgradeSite,
  alter: (...parts: Parameters<RequestListener>) => boolean,
) {
  return serve((request, response) => {
    if (alter(request, response)) return
    const path = join(site.release, request.url!.slice(1))
    if (existsSync(path)) response.end(readFileSync(path))
    else response.writeHead(404).end()
  })
}

test('a release is installed from a server, also behind a redirect', async () => {
  using site = new UpgradeSite()
  const target = await serveRelease(site, () => false)
  const from = await serve((request, response) =>
    response.writeHead(302, { location: `${target}${request.url}` }).end(),
  )
  expect((await site.upgrade('--from', `${from}/`)).exit).toBe(0)
  expect(site.seen()).toMatchObject({ server: NEW, running: NEW })
})

test('a download that is cut anywhere is rejected, and nothing is replaced', {
  tags: ['slow'],
}, async () => {
  using site = new UpgradeSite()
  const archive = readFileSync(join(site.release, archiveName(NEW)))
  for (const at of [0, 1, 100, archive.length - 1]) {
    for (const saysLength of [true, false]) {
      const from = await serveRelease(site, (request, response) => {
        if (!request.url!.endsWith('.tar.gz')) return false
        if (saysLength) response.setHeader('content-length', archive.length)
        // A server that ends the body in order says that it is whole: only the digest shows it.
        if (!saysLength) response.end(archive.subarray(0, at))
        else response.write(archive.subarray(0, at), () => response.destroy())
        return true
      })
      const { exit, err } = await site.upgrade('--from', from)
      const code = saysLength ? 'CLIENT_UPGRADE_UNDELIVERED' : 'CLIENT_UPGRADE_UNTRUSTED'
      expect(err, `cut at ${at}`).toContain(`svc: ${code}`)
      expect(exit).not.toBe(0)
    }
  }
  expect(site.seen()).toEqual(UNTOUCHED)
})

test('a list or a signature that is cut is rejected, and nothing is replaced', async () => {
  using site = new UpgradeSite()
  for (const name of ['SHA256SUMS', 'SHA256SUMS.minisig']) {
    const whole = readFileSync(join(site.release, name))
    const from = await serveRelease(site, (request, response) => {
      if (request.url !== `/${name}`) return false
      response.end(whole.subarray(0, whole.length / 2))
      return true
    })
    expect((await site.upgrade('--from', from)).err).toContain('svc: CLIENT_UPGRADE_UNTRUSTED')
  }
  expect(site.seen()).toEqual(UNTOUCHED)
})

test('an older release that a mirror serves in place of the newest is rejected', async () => {
  using site = new UpgradeSite()
  site.publish('0.4.0')
  const from = await serveRelease(site, () => false)
  const { err } = await site.upgrade('--from', from)
  expect(err).toContain(`It is 0.4.0, and ${OLD} is installed.`)
  expect(site.seen()).toEqual(UNTOUCHED)
})

test('an endless file is given up at its bound', async () => {
  const from = await serve((_, response) => {
    const write = (): void => void response.write(Buffer.alloc(65_536), (error) => error || write())
    write()
  })
  await expect(readSmall(source(from), 'SHA256SUMS', 100_000)).rejects.toEqual(
    undelivered('larger than 100000 bytes'),
  )
  const options = { to: join(work, 'file'), bytesMax: 100_000, onBytes: () => {} }
  await expect(download(source(from), 'archive', options)).rejects.toEqual(undelivered('larger'))
})

test('a server that sends nothing more is given up', async () => {
  const silent = await serve(() => {})
  const half = await serve((_, response) => void response.write('half'))
  for (const from of [silent, half]) {
    await expect(readSmall(source(from, { stallMs: 200 }), 'file', 100)).rejects.toEqual(
      undelivered('no byte came for 0.2 s'),
    )
  }
})

test('an error of the server and a missing file are told apart', async () => {
  const from = await serve((request, response) =>
    response.writeHead(request.url === '/none' ? 404 : 503).end('text'),
  )
  expect(await readSmall(source(from), 'none', 100)).toBeNull()
  await expect(readSmall(source(from), 'file', 100)).rejects.toEqual(undelivered('HTTP 503'))
})

test.each([
  ['to plain HTTP', 'http://example.com/file'],
  ['to another scheme', 'file:///etc/passwd'],
  ['with a password', 'https://user:password@example.com/file'],
  ['without an end', '/again'],
])('a redirect %s is not followed', async (_, location) => {
  const from = await serve((_request, response) => response.writeHead(302, { location }).end())
  await expect(readSmall(source(from), 'file', 100)).rejects.toEqual(undelivered('redirects'))
})

test('a server whose certificate is not trusted is rejected', async () => {
  const { certificate, key } = selfSigned('127.0.0.1')
  const from = await serve((_, response) => response.end('x'), { cert: certificate, key })
  await expect(readSmall(source(from), 'file', 100)).rejects.toEqual(
    undelivered('cannot be reached'),
  )
})

test('a directory is read, and only its regular files', async () => {
  writeFileSync(join(work, 'file'), 'text')
  mkdirSync(join(work, 'directory'))
  const from = source('', { address: { kind: 'directory', path: work } })
  expect((await readSmall(from, 'file', 100))?.toString()).toBe('text')
  expect(await readSmall(from, 'none', 100)).toBeNull()
  await expect(readSmall(from, 'directory', 100)).rejects.toEqual(undelivered('not a regular'))
  // Repeated because a descriptor that is closed twice fails only some of the time.
  for (let i = 0; i < 200; i++) {
    await expect(readSmall(from, 'file', 3)).rejects.toEqual(undelivered('larger than 3'))
  }
})

test.each([
  'http://example.com/x',
  'http://localhost/x',
  'http://127.0.0.1.example.com',
  'https://user:password@example.com',
  'https://example.com/x?y',
  'https://example.com/x#y',
  'ftp://example.com',
  'file://host/x',
])('%s is not the address of a release', async (from) => {
  using site = new UpgradeSite()
  const { exit, err } = await site.upgrade('--from', from)
  expect([exit, err]).toEqual([2, expect.stringContaining('is an https URL')])
})
