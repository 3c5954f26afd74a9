/** `svc/client` for Node, which has no WebSocket before version 22: there it loads `ws`. */
import { Client, type ClientOptions } from './client.ts'
import { standardPlatform } from './platform.ts'

export * from './browser.ts'

export function createClient(options: ClientOptions): Client {
  return new Client(options, standardPlatform(loadSocket))
}

async function loadSocket() {
  return (await import('ws')).WebSocket
}
