/**
 * Serves the page of the chat template, bundled, with a functional token for each window. Only its
 * settings are replaced: they come from this server, with a token hook.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bundlePage } from '../../build/quickstart/page.ts'
import type { UserTokens } from '../../testing/providers/user-tokens.ts'

const SETTINGS = `
const { url, applicationKey } = await (await fetch('/settings')).json()
const token = async ({ refresh }: { refresh: boolean }): Promise<string> => {
  const response = await fetch(refresh ? '/token?refresh' : '/token')
  if (!response.ok) throw new Error('There is no token.')
  return response.text()
}
export const settings = { url, applicationKey, target: 'channel:production', token }
`

export interface PageServer {
  readonly origin: string
  settings: { readonly url: string; readonly applicationKey: string }
  /** Bundles the page of a Workspace. */
  prepare(workspace: string): Promise<void>
  close(): void
}

export async function pageServer(tokens: UserTokens): Promise<PageServer> {
  const files = new Map<string, string>()
  const server = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url!, 'http://page.test')
    response.setHeader('cache-control', 'no-store')
    if (pathname === '/settings') response.end(JSON.stringify(page.settings))
    else if (pathname === '/token') {
      const token = await tokens.give(search === '?refresh')
      response.statusCode = token === null ? 503 : 200
      response.end(token)
    } else {
      const type = /\.(js|css)$/.exec(pathname)?.[1]
      const types: Record<string, string> = { js: 'text/javascript', css: 'text/css' }
      response.setHeader('content-type', `${types[type ?? ''] ?? 'text/html'}; charset=utf-8`)
      response.end(files.get(pathname) ?? files.get('/'))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const page: PageServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    settings: { url: '', applicationKey: '' },
    async prepare(workspace) {
      for (const [path, text] of await bundlePage(workspace, SETTINGS)) files.set(path, text)
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return page
}
