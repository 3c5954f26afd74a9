/** The S3-compatible API behind the shipped proxy configurations, on another port than 443. */
import { request } from 'node:https'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openS3Api, type S3Api } from '../../../../testing/files/s3-apis.ts'
import { signS3 } from '../../../../testing/files/s3-signers.ts'
import {
  APPLICATION_HOST,
  CADDY,
  NGINX,
  type RunningProxy,
} from '../../../../testing/servers/proxies.ts'

let s3: S3Api
beforeAll(async () => {
  s3 = await openS3Api()
})
afterAll(() => s3.close())

describe.each([NGINX, CADDY])('behind $name', (kind) => {
  const where = kind.installed ? 'as shipped' : `which is not at ${kind.executable}`

  describe.skipIf(!kind.installed)(where, () => {
    let proxy: RunningProxy
    beforeAll(async () => {
      const { host } = new URL(s3.endpoint)
      proxy = await kind.start({ management: host, application: host })
    })
    afterAll(() => proxy?.stop())

    /** Signs for the address of the proxy, whose port is not that of HTTPS, and sends there. */
    const send = (method: string, body = '') => {
      const host = `${APPLICATION_HOST}:${proxy.port}`
      const path = '/v1/s3/default/proxied%20%C3%A9'
      const { headers } = signS3(s3.keys, { method, url: `https://${host}${path}`, body })
      return new Promise<{ status: number; text: string }>((resolve, reject) => {
        const sent = request({
          host: '127.0.0.1',
          port: proxy.port,
          method,
          path,
          agent: false,
          servername: APPLICATION_HOST,
          rejectUnauthorized: false,
          headers: { ...headers, host, 'content-length': String(body.length) },
        })
        sent.once('error', reject)
        sent.once('response', async (response) => {
          let text = ''
          for await (const chunk of response.setEncoding('utf8')) text += chunk
          resolve({ status: response.statusCode!, text })
        })
        sent.end(body)
      })
    }

    test('signatures of requests to another port than 443 are valid', async () => {
      expect(await send('PUT', 'through a proxy')).toEqual({ status: 200, text: '' })
      expect(await send('GET')).toEqual({ status: 200, text: 'through a proxy' })
    })
  })
})
