/**
 * The application origin of an application process: a request and a Realtime message are answered
 * once the process has followed as far as the main process has answered.
 */
import type { ApplicationBinding } from '../../http/application/incoming.ts'
import type { ApplicationOrigin } from '../../http/application/mount.ts'
import { peerOf } from '../../http/rate-limits.ts'
import type { MemoryBudget } from '../../system/memory/memory-budget.ts'
import type { ListenerApp } from '../listeners.ts'
import { CurrentSession } from './current-session.ts'
import type { Follower } from './follower.ts'
import type { ForwardedRequests } from './forwarded-requests.ts'

export function currentApp(
  origin: ApplicationOrigin,
  follower: Follower,
  forwarded: ForwardedRequests,
  /** The memory of unfinished requests. */
  memory: MemoryBudget,
): ListenerApp {
  const answer = (request: Request, binding: ApplicationBinding) => {
    if (forwarded.includes(request.url)) return forwarded.answer(request, binding)
    const isUpgrade = request.headers.has('upgrade')
    return origin.fetch(request, isUpgrade ? currentSockets(binding, follower, memory) : binding)
  }
  return {
    fetch: (request, binding) =>
      follower.isCurrent
        ? answer(request, binding)
        : follower.current().then(() => answer(request, binding)),
    reject: (binding, fault) => origin.reject(binding, fault),
    // The main process answers a HEAD request that is forwarded.
    answersHead: (request) => origin.answersHead(request),
  }
}

function currentSockets(
  binding: ApplicationBinding,
  follower: Follower,
  memory: MemoryBudget,
): ApplicationBinding {
  const peer = peerOf(binding)
  const share = memory.shareOf({ credential: null, peer })
  return {
    peer,
    takeTime: () => binding.takeTime(),
    returnTime: () => binding.returnTime(),
    setTime: (seconds) => binding.setTime(seconds),
    setRate: (bytesPerSecond) => binding.setRate(bytesPerSecond),
    isAnswered: () => binding.isAnswered(),
    namesBytes: false,
    upgrade: ({ headers, session }) =>
      binding.upgrade({ headers, session: new CurrentSession(session, follower, share) }),
  }
}
