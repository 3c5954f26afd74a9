/**
 * A process of WebSocket clients, so that their work does not delay the client that is measured.
 * Prints a line once all have received what they get at first, and one at the end of each round.
 */
export interface Plan {
  readonly url: string
  readonly protocol?: string
  readonly clients: number
  /** Sent by each client once it is open; `{i}` stands for its number. */
  readonly messages: readonly string[]
  /** Messages that each client receives before it is ready. */
  readonly firstMessages: number
  /** Messages that all clients together receive in a round. */
  readonly roundMessages: number
}

/** Maximum number of connections being opened: fewer than the backlog of a listener holds. */
const OPENING_MAX = 100

const plan: Plan = JSON.parse(process.env.PLAN!)
let missing = plan.clients * plan.firstMessages

function received(): void {
  missing -= 1
  if (missing === 0) endRound()
}

function endRound(): void {
  missing = plan.roundMessages
  process.stdout.write('\n')
}

async function open(i: number): Promise<void> {
  const socket = new WebSocket(plan.url, plan.protocol === undefined ? [] : [plan.protocol])
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  socket.onmessage = received
  socket.onclose = () => process.exit(1)
  for (const message of plan.messages) socket.send(message.replaceAll('{i}', String(i)))
}

let next = 0
await Promise.all(
  Array.from({ length: OPENING_MAX }, async () => {
    while (next < plan.clients) await open(next++)
  }),
)
if (plan.firstMessages === 0) endRound()
