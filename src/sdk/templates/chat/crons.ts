import { cronJobs } from 'svc'

/**
 * Functions that run at fixed times. With `internal` of './_generated/api':
 *
 *   digest: { schedule: '0 7 * * mon-fri', timeZone: 'Europe/Rome', function: internal.mail.send },
 *   sweep: { every: { minutes: 10 }, function: internal.messages.sweep },
 */
export default cronJobs({})
