/** The samples of applications, as the files of a project with the package `svc`. */
import type { TextAt } from './workspaces.ts'

const CLIENT = 'src/docs/client.md'
const HEAD = `import { createClient, indexedDbStore } from 'svc/client'
import { api, type Id } from './generated/api'
declare const channel: Id<'channels'>
`
const MESSAGE = "NonNullable<typeof api.messages.list.types>['result'][number]"
const CONNECTED = `${HEAD}declare const svc: ReturnType<typeof createClient>\n`

/** Returns the files by path. Names that a reader has are declared. */
export function applicationSamples(at: TextAt): Record<string, string> {
  return {
    'set-up.ts': `${at(`${CLIENT}#set-up 2`)}
declare const session: { token(options: { refresh: boolean }): Promise<string | null> }
export { svc }
`,
    'calls.ts': `${CONNECTED}declare function render(messages: readonly { body: string }[]): void
${at(`${CLIENT}#calls 1`)}
export { channels, id, stop }
`,
    'store.ts': `${HEAD}declare const options: Parameters<typeof createClient>[0]
declare const userId: string
${at(`${CLIENT}#mutations 1`)}
export { svc }
`,
    'optimistic.ts': `${CONNECTED}declare const message: {
  channel: Id<'channels'>
  author: string
  body: string
}
declare const draft: ${MESSAGE}
${at(`${CLIENT}#mutations 2`)}
`,
    'messages.tsx': `import type { ReactNode } from 'react'
declare function List(properties: {
  messages: readonly ${MESSAGE}[]
  onSend: (body: string) => unknown
}): ReactNode
${at(`${CLIENT}#react 1`)}
export { Messages }
`,
    'bucket.js': at('src/docs/s3.md#set-up-of-clients 6'),
  }
}
