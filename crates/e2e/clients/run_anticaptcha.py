"""python-anticaptcha: requests or, async, httpx; JSON. It drops any path of its address, so that it only ever calls the root
of a server, and waits five seconds for the reply to createTask."""

import driver

order = driver.prepare()

import python_anticaptcha as anticaptcha  # noqa: E402

driver.watch_requests()
driver.watch_httpx()


def task(order):
    page, key = order.page, order.site_key
    through = {
        "proxy_type": order.proxy_type.lower(),
        "proxy_address": order.proxy_host,
        "proxy_port": order.proxy_port,
        "proxy_login": order.proxy_login,
        "proxy_password": order.proxy_password,
        "user_agent": order.agent,
    }
    match order.what:
        case "image":
            return anticaptcha.ImageToTextTask(order.image)
        case "recaptcha_v2":
            return anticaptcha.NoCaptchaTaskProxylessTask(page, key)
        case "recaptcha_v2_proxy":
            return anticaptcha.RecaptchaV2Task(page, key, **through)
        case "recaptcha_v2_enterprise":
            return anticaptcha.RecaptchaV2EnterpriseTaskProxyless(page, key, None, None)
        case "recaptcha_v3":
            return anticaptcha.RecaptchaV3TaskProxyless(page, key, min_score=0.3, page_action="login")
        case "hcaptcha":
            return anticaptcha.HCaptchaTaskProxyless(page, key)
        case "geetest":
            return anticaptcha.GeeTestTaskProxyless(page, order.gt, order.challenge)
        case "funcaptcha":
            return anticaptcha.FunCaptchaProxylessTask(page, key)
    raise driver.NotOffered(order)


def answer(job, order):
    match order.what:
        case "image":
            return job.get_captcha_text()
        case "geetest":
            return job.get_solution()
        case "funcaptcha":
            return job.get_token_response()
    return job.get_solution_response()


async def solve(order):
    kind = anticaptcha.AsyncAnticaptchaClient if order.how == "async" else anticaptcha.AnticaptchaClient
    client = kind(order.key, host=order.host, use_ssl=order.is_tls)
    if order.what == "balance":
        return await driver.settled(client.getBalance())
    job = await driver.settled(client.createTask(task(order)))
    await driver.settled(job.join(maximum_time=80, backoff=True))
    if order.report:
        is_image = order.what == "image"
        reply = job.report_incorrect_image() if is_image else job.report_incorrect_recaptcha()
        if not await driver.settled(reply):
            raise ValueError("the report was not accepted")
    return answer(job, order), job.task_id


driver.run(solve, order)
