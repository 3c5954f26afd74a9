/** `svc roles`: what each role can do, from the table that the server grants by. */
import { CAPABILITIES, capabilitiesOfRole, ROLES } from '../../../value/capabilities.ts'
import { command } from '../../contexts.ts'

export const rolesCommand = command({
  name: 'roles',
  summary: 'Show the capabilities that each role gives',
  details: [
    'Asks no server. A role is what `svc invite` expands to capabilities; a grant keeps those that',
    'it was given, which `svc whoami` and `svc operators show` print.',
  ],
  options: {},
  async run({ output }) {
    const roles = ROLES.map((role) => ({ role, capabilities: [...capabilitiesOfRole(role)] }))
    const rows = CAPABILITIES.map((capability) => [
      capability,
      ...roles.map(({ capabilities }) => (capabilities.includes(capability) ? 'yes' : '-')),
    ])
    await output.result({ version: 1, roles }, output.table(['CAPABILITY', ...ROLES], rows))
  },
})
