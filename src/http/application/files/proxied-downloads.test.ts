/** Signed URLs behind nginx with the shipped configuration. nginx logs requests by default. */
import { request } from 'node:https'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import { APPLICATION_HOST, NGINX, type RunningProxy } from '../../../../testing/servers/proxies.ts'

const where = NGINX.installed ? 'as shipped' : `which is not at ${NGINX.executable}`

describe.skipIf(!NGINX.installed)(`behind nginx ${where}`, () => {
  let server: FileServer
  let proxy: RunningProxy
  beforeAll(async () => {
    server = await openFileServer()
    const { host } = new URL(server.origin)
    proxy = await NGINX.start({ management: host, application: host })
  })
  afterAll(async () => {
    await proxy?.stop()
    await server?.close()
  })

  const show = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const sent = request({
        host: '127.0.0.1',
        port: proxy.port,
        path,
        agent: false,
        servername: APPLICATION_HOST,
        rejectUnauthorized: false,
        headers: { host: `${APPLICATION_HOST}:${proxy.port}`, ...headers },
      })
      sent.once('error', reject)
      sent.once('response', async (response) => {
        let text = ''
        for await (const chunk of response.setEncoding('utf8')) text += chunk
        resolve({ status: response.statusCode!, text })
      })
      sent.end()
    })

  test('a signed URL is served, and is not in the log of the proxy', async () => {
    const path = server.signDownload(await server.upload('a picture', 'image/png'))
    const part = await show(path, { range: 'bytes=2-' })
    expect(part).toEqual({ status: 206, text: 'picture' })
    // The log is written in order, so a later line proves that the earlier request has no line.
    expect((await show('/healthz')).status).toBe(200)
    await expect.poll(() => proxy.accessLog(), { timeout: 60_000 }).toContain('/healthz')
    expect(proxy.accessLog()).not.toContain('signed-downloads')
  })

  test('the address of a client of a signed URL is the one that the proxy saw', async () => {
    const path = server.signDownload(await server.upload('another', 'image/png'))
    const forged = `${path.slice(0, -4)}AAAA`
    const reply = await show(forged, { 'x-forwarded-for': '203.0.113.9' })
    expect(reply.status).toBe(401)
    expect(server.log.text()).toContain('"peer":"127.0.0.1"')
    expect(server.log.text()).not.toContain('203.0.113.9')
  })
})
