/** Commands while the Environment is archived. */
import { argv } from '../argv.ts'
import type { Situation } from './situations.ts'

export const ARCHIVED: readonly Situation[] = [
  {
    situation: 'the status is read',
    run: argv`svc status --root {root}`,
    exit: 0,
    message: [],
    result:
      'The Environment is archived and serves no calls. ' +
      'Run `svc environments restore` to serve again.',
  },
  {
    situation: 'the health is read',
    run: argv`svc health --root {root}`,
    exit: 0,
    message: [],
    result: '{environmentId}  healthy, archived',
  },
  {
    situation: 'a Release is released',
    run: argv`svc release --root {root} --release {release} --channel production`,
    exit: 0,
    message: [
      'The Environment is archived and serves no calls. Run `svc environments restore` ' +
        'to serve again.',
      'validate  validated (9 checks)',
      'promote   production revision 1 (bound before)',
    ],
    result: '{release} is bound to production.',
  },
  {
    situation: 'a Function is called',
    run: argv`
      svc call channels.list --root {root} --url {application} --key-env KEY
      --target channel:production
    `,
    environment: { KEY: '{key}' },
    exit: 5,
    message: [
      'svc: UNAVAILABLE: The service is temporarily unavailable. The Environment is ' + 'archived.',
      '  Run `svc environments restore` to serve again.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Environment is archived again',
    run: argv`svc environments archive --root {root}`,
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  environment {environmentId}: an Environment that is not archived yet; this one ' +
        'is archived',
      '  Read the state with `svc status`, then decide whether to repeat the change.',
      '  request {request}',
    ],
  },
]
